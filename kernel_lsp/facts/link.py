"""The one facts host of the server: started when needed, again after it died, ended when idle."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Protocol

from kernel_lsp.facts.host import FactsLauncher, FactsProcess
from search_engine.domain.facts_message import FactsHostAnswer, FactsHostRequest

log = logging.getLogger(__name__)

FIRST_RESTART, LONGEST_RESTART = 1.0, 60.0
"""Seconds before a host that died is started again; doubled each time."""

SILENCE_SECONDS = 180.0
"""A host that says nothing for so long, with work to do, is killed."""

IDLE_SECONDS = 900.0
"""A host without work ends after this; its workers hold half a gigabyte."""


class LinkUser(Protocol):
    """Whoever asks the host."""

    @property
    def working(self) -> bool:
        """True while the host owes an answer."""
        ...

    def take(self, answer: FactsHostAnswer) -> None:
        """The host has said something."""
        ...

    def died(self, words: str) -> None:
        """The host has died, with these last words; nothing that was asked will be answered."""
        ...


@dataclass(slots=True)
class FactsLink:
    """At most one host at a time."""

    launcher: FactsLauncher
    user: LinkUser
    spawn: Callable[[Coroutine[Any, Any, Any]], asyncio.Task[Any]]
    failures: int = 0
    """Deaths of the host since it last finished something."""
    starts: int = 0
    _process: FactsProcess | None = None
    _reader: asyncio.Task[None] | None = None
    _starting: asyncio.Lock = field(default_factory=asyncio.Lock)
    _not_before: float = 0.0
    _watch: asyncio.TimerHandle | None = None
    _closed: bool = False

    @property
    def running(self) -> bool:
        """True while there is a host."""
        return self._process is not None

    async def ready(self) -> FactsProcess:
        """The running host; started if there is none. Raises OSError."""
        while (wait := self._not_before - time.monotonic()) > 0 and self._process is None:
            await asyncio.sleep(wait)
        async with self._starting:
            if self._closed:
                raise OSError("the server is shutting down")
            if self._process is None:
                self._process = await self.launcher.launch()
                self.starts += 1
                self._reader = self.spawn(self._read(self._process))
            return self._process

    async def ask(self, message: FactsHostRequest) -> None:
        """Send a message, to a new host if there is none. Raises OSError."""
        process = await self.ready()
        process.ask(message)
        self._heard()

    def tell(self, message: FactsHostRequest) -> bool:
        """Send a message to a running host; False if there is none."""
        if self._process is None:
            return False
        self._process.ask(message)
        self._heard()
        return True

    def kill(self) -> None:
        """Kill the host with all that it does; no crash."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()

    async def close(self) -> None:
        """Start nothing more and return when the host is gone."""
        self._closed = True
        if self._watch is not None:
            self._watch.cancel()
        async with self._starting:
            await self._end()

    async def _read(self, process: FactsProcess) -> None:
        async for answer in process.answers():
            if self._process is process:
                self.user.take(answer)
                self._heard()
        if self._process is process:
            self._process = None
            log.warning("the facts host ended: %s", process.last_words)
            wait = min(FIRST_RESTART * 2**self.failures, LONGEST_RESTART)
            self.failures += 1
            self._not_before = time.monotonic() + wait
            self.user.died(process.last_words)
        await process.close()

    async def _end(self) -> None:
        process, self._process = self._process, None
        reader, self._reader = self._reader, None
        if process is None or reader is None:
            return
        reader.cancel()  # only one at a time may read
        await asyncio.wait([reader])
        await process.close()

    def _heard(self) -> None:
        """Something was said: wait for silence from now on."""
        if self._watch is not None:
            self._watch.cancel()
        patience = SILENCE_SECONDS if self.user.working else IDLE_SECONDS
        self._watch = asyncio.get_running_loop().call_later(patience, self._silent)

    def _silent(self) -> None:
        if self._process is None:
            return
        if self.user.working:
            log.warning("the facts host said nothing for %.0f s", SILENCE_SECONDS)
            self._process.kill()  # read as a crash
        else:
            self.spawn(self._end())
