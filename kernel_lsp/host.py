"""The search host as the server sees it: a child process that turns one request into events.

The search has a process of its own, so that neither its CPU time nor its crash can touch typing.
The request is one JSON line on its standard input, each event one JSON line on its standard
output. Closing the input ends the host and its workers.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import sys
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from kernel_lsp.processes import kill_tree
from search_engine.domain import codec
from search_engine.domain.event import SearchEvent

log = logging.getLogger(__name__)

LINE_LIMIT_BYTES = 32 * 2**20
"""Longest event: a candidate carries the complete text of a file, a report several."""

BURST = 40
"""Events handled without a pause; then the loop is left to the editor for ``PAUSE_SECONDS``."""

PAUSE_SECONDS = 0.02

EXIT_SECONDS = 1.5
"""From a wish to end to the kill; with the kill itself a host is dead within two seconds."""

NICENESS = 10

_BOOT = (
    "import sys, runpy; sys.path.insert(0, sys.argv.pop(1)); "
    "runpy.run_module('search_engine.host', run_name='__main__', alter_sys=True)"
)


def host_command() -> tuple[str, ...]:
    """Start the host with this interpreter, whether installed or run from a checkout.

    ``-P`` keeps the working directory off ``sys.path``.
    """
    root = Path(__file__).resolve().parent.parent
    return (sys.executable, "-P", "-c", _BOOT, str(root))


@dataclass(slots=True)
class HostProcess:
    """One running host."""

    process: asyncio.subprocess.Process
    stderr_tail: deque[str] = field(default_factory=lambda: deque[str](maxlen=20))
    _stderr_task: asyncio.Task[None] | None = None

    async def events(self) -> AsyncIterator[SearchEvent]:
        """Events in order until the host closes its output. Lines that are none are logged."""
        assert self.process.stdout is not None
        handled = 0
        while True:
            try:
                line = await self.process.stdout.readline()
            except ValueError:
                log.exception("the search host wrote a line over %d bytes", LINE_LIMIT_BYTES)
                return
            if not line:
                return
            event = _decode(line)
            if event is not None:
                yield event
            handled += 1
            # ``readline`` does not suspend while lines are buffered: a flooding host would
            # otherwise keep the loop to itself.
            await asyncio.sleep(PAUSE_SECONDS if handled % BURST == 0 else 0)

    def request_cancel(self) -> None:
        """Ask the host to stop and report; it may ignore that."""
        self._write({"cancel": True})

    async def close(self) -> None:
        """End the host and everything below it; return when it is gone."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._drained(), EXIT_SECONDS)
        self.kill()
        await self.process.wait()
        if self._stderr_task is not None:
            self._stderr_task.cancel()

    def kill(self) -> None:
        """SIGKILL the whole tree at once."""
        kill_tree(self.process.pid)

    def start_stderr(self) -> None:
        """Copy the host's standard error to the log."""
        self._stderr_task = asyncio.create_task(self._copy_stderr())

    async def _drained(self) -> None:
        assert self.process.stdout is not None
        while await self.process.stdout.read(2**16):
            pass
        await self.process.wait()

    async def _copy_stderr(self) -> None:
        assert self.process.stderr is not None
        while chunk := await self.process.stderr.read(2**14):
            for line in chunk.decode(errors="replace").splitlines():
                self.stderr_tail.append(line)
                log.debug("host %d: %s", self.process.pid, line)

    def _write(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(ConnectionError, RuntimeError):
            self.process.stdin.write(json.dumps(message).encode() + b"\n")


@dataclass(frozen=True, slots=True)
class HostLauncher:
    """Starts hosts. ``command`` is the program; every child gets pipes of its own."""

    command: tuple[str, ...]
    cwd: str

    async def launch(self, request: dict[str, Any]) -> HostProcess:
        """Start a host and send the request. Raises OSError if it cannot start."""
        cwd = Path(self.cwd)
        with contextlib.suppress(OSError):
            cwd.mkdir(parents=True, exist_ok=True)
        process = await asyncio.create_subprocess_exec(
            *self.command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=LINE_LIMIT_BYTES,
            start_new_session=True,
            cwd=cwd if cwd.is_dir() else cwd.anchor,
        )
        with contextlib.suppress(OSError):
            # Compilers and the interpreter saturate every core: the editor and the server come
            # first. Inherited by whatever the host starts.
            os.setpriority(os.PRIO_PROCESS, process.pid, NICENESS)
        host = HostProcess(process)
        host.start_stderr()
        host._write(request)  # pyright: ignore[reportPrivateUsage]
        return host


def _decode(line: bytes) -> SearchEvent | None:
    try:
        return cast("SearchEvent", codec.decode(SearchEvent, json.loads(line)))
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        log.warning("%d bytes that are no event: %s", len(line), type(error).__name__)
        return None
