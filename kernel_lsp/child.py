"""A child process that speaks JSON lines: the search host of a run, the facts host of the server.

Work has processes of its own, so that neither its CPU time nor its crash can touch typing. Closing
a child's input ends it and its workers.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from kernel_lsp.processes import kill_tree

log = logging.getLogger(__name__)

BURST = 40
"""Lines handled without a pause; then the loop is left to the editor for ``PAUSE_SECONDS``."""

PAUSE_SECONDS = 0.02

EXIT_SECONDS = 1.5
"""From a wish to end to the kill; with the kill itself a child is dead within two seconds."""

NICENESS = 10

_BOOT = (
    "import sys, runpy; sys.path.insert(0, sys.argv.pop(1)); "
    "runpy.run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)"
)


def engine_command(module: str) -> tuple[str, ...]:
    """Run a module of the search engine, whether installed or from a checkout.

    ``-P`` keeps the working directory off ``sys.path``.
    """
    root = Path(__file__).resolve().parent.parent
    return (sys.executable, "-P", "-c", _BOOT, str(root), module)


@dataclass(slots=True)
class Child:
    """One running child."""

    process: asyncio.subprocess.Process
    stderr_tail: deque[str] = field(default_factory=lambda: deque[str](maxlen=20))
    _stderr_task: asyncio.Task[None] | None = None

    @classmethod
    async def start(cls, command: tuple[str, ...], cwd: Path, line_limit: int) -> Self:
        """Start a child with pipes of its own. Raises OSError if that fails."""
        with contextlib.suppress(OSError):
            cwd.mkdir(parents=True, exist_ok=True)
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=line_limit,
            start_new_session=True,
            cwd=cwd if cwd.is_dir() else cwd.anchor,
        )
        with contextlib.suppress(OSError):
            # Compilers and the interpreter saturate every core: the editor and the server come
            # first. Inherited by whatever the child starts.
            os.setpriority(os.PRIO_PROCESS, process.pid, NICENESS)
        child = cls(process)
        child._stderr_task = asyncio.create_task(child._copy_stderr())
        return child

    async def lines(self) -> AsyncIterator[bytes]:
        """Lines of its output, in order, until it closes that."""
        assert self.process.stdout is not None
        handled = 0
        while True:
            try:
                line = await self.process.stdout.readline()
            except ValueError:
                log.exception("child %d wrote a line that is too long", self.process.pid)
                return
            if not line:
                return
            yield line
            handled += 1
            # ``readline`` does not suspend while lines are buffered: a flooding child would
            # otherwise keep the loop to itself.
            await asyncio.sleep(PAUSE_SECONDS if handled % BURST == 0 else 0)

    def send(self, line: bytes) -> None:
        """Write a line; a child that is gone hears nothing."""
        assert self.process.stdin is not None
        with contextlib.suppress(ConnectionError, RuntimeError):
            self.process.stdin.write(line)

    async def close(self) -> None:
        """End the child and everything below it; return when it is gone."""
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

    @property
    def last_words(self) -> str:
        """The last line of its standard error, cut to a sentence's length."""
        return self.stderr_tail[-1][:120] if self.stderr_tail else "no message"

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
                log.debug("child %d: %s", self.process.pid, line)
