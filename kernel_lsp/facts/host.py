"""The facts host as the server sees it: one long-lived child that compiles and reads machine code.

Messages are those of ``search_engine.domain.facts_message``, one JSON line each.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from kernel_lsp.child import Child, engine_command
from search_engine.domain.facts_message import (
    LARGEST_LINE_BYTES,
    FactsHostAnswer,
    FactsHostRequest,
    FactsMessageError,
    answer_from_line,
    to_line,
)

log = logging.getLogger(__name__)

LARGE_BYTES = 16 * 1024
"""Longer answers (listings) are decoded in a thread: this many take half a millisecond."""


def facts_command() -> tuple[str, ...]:
    """Start the facts host with this interpreter."""
    return engine_command("search_engine.facts_host")


@dataclass(slots=True)
class FactsProcess(Child):
    """One running facts host."""

    def ask(self, request: FactsHostRequest) -> None:
        """Send one request."""
        self.send(to_line(request))

    async def answers(self) -> AsyncIterator[FactsHostAnswer]:
        """Answers in order until the host closes its output. Lines that are none are logged."""
        async for line in self.lines():
            try:
                if len(line) > LARGE_BYTES:
                    yield await asyncio.to_thread(answer_from_line, line)
                else:
                    yield answer_from_line(line)
            except FactsMessageError:
                log.warning("%d bytes of the facts host that are no answer", len(line))


@dataclass(frozen=True, slots=True)
class FactsLauncher:
    """Starts facts hosts. ``command`` is the program."""

    command: tuple[str, ...]
    cwd: str

    async def launch(self) -> FactsProcess:
        """Start one. Raises OSError if that fails."""
        return await FactsProcess.start(self.command, Path(self.cwd), LARGEST_LINE_BYTES)
