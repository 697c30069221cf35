"""The search host as the server sees it: a child process that turns one request into events.

The request is one JSON line on its standard input, each event one JSON line on its standard
output.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from kernel_lsp.child import Child, engine_command
from search_engine.domain import codec
from search_engine.domain.event import SearchEvent

log = logging.getLogger(__name__)

LINE_LIMIT_BYTES = 32 * 2**20
"""Longest event: a candidate carries the complete text of a file, a report several."""


def host_command() -> tuple[str, ...]:
    """Start the search host with this interpreter."""
    return engine_command("search_engine.host")


@dataclass(slots=True)
class HostProcess(Child):
    """One running search host."""

    async def events(self) -> AsyncIterator[SearchEvent]:
        """Events in order until the host closes its output. Lines that are none are logged."""
        async for line in self.lines():
            event = _decode(line)
            if event is not None:
                yield event

    def request_cancel(self) -> None:
        """Ask the host to stop and report; it may ignore that."""
        self.send(b'{"cancel": true}\n')


@dataclass(frozen=True, slots=True)
class HostLauncher:
    """Starts hosts. ``command`` is the program."""

    command: tuple[str, ...]
    cwd: str

    async def launch(self, request: dict[str, Any]) -> HostProcess:
        """Start a host and send the request. Raises OSError if it cannot start."""
        host = await HostProcess.start(self.command, Path(self.cwd), LINE_LIMIT_BYTES)
        host.send(json.dumps(request).encode() + b"\n")
        return host


def _decode(line: bytes) -> SearchEvent | None:
    try:
        return cast("SearchEvent", codec.decode(SearchEvent, json.loads(line)))
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        log.warning("%d bytes that are no event: %s", len(line), type(error).__name__)
        return None
