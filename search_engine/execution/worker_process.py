"""One worker process: start it, send it jobs, kill it with everything it started."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import signal
import socket
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

from search_engine.domain.job import Completed, Crashed, Expired, Job, JobResult, Refusal, Reply
from search_engine.execution.wire import (
    LARGEST_MESSAGE_BYTES,
    PROTOCOL,
    Hello,
    Ready,
    Request,
    Response,
    WireError,
    from_line,
    to_line,
)

_START_SECONDS = 120.0
"""Importing torch from a cold network file system takes a minute; nothing sane takes two."""

_KILL_SECONDS = 2.0
_LOG_TAIL_BYTES = 16 * 1024
_DETAIL_CHARACTERS = 2000


class StartError(Exception):
    """The worker did not come up; the message is for people."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to start a worker.

    ``root`` is the workspace, last on the worker's path. ``memory_bytes`` limits address space.
    """

    python: str
    stage: Path
    root: Path
    environment: dict[str, str]
    warm: tuple[str, ...] = ()
    nice: int = 0
    memory_bytes: int | None = None
    file_bytes: int | None = None


@dataclass(slots=True, eq=False)
class WorkerProcess:
    """A running worker. Use ``start`` to make one; one job at a time."""

    process: asyncio.subprocess.Process
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    lifeline: int
    log: _Log
    group: int | None = None
    usable: bool = True
    _killed: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def run(self, job: Job, deadline_seconds: float) -> JobResult:
        """Do one job. The worker is killed if it misses the deadline, dies, or is cancelled."""
        started = time.monotonic()
        try:
            reply = await asyncio.wait_for(self._ask(job), deadline_seconds)
        except asyncio.TimeoutError:  # noqa: UP041 (another class before Python 3.11)
            await self.kill()
            return Expired(deadline_seconds, time.monotonic() - started)
        except (OSError, WireError, EOFError) as error:
            await self.kill()
            return Crashed(self._detail(error), time.monotonic() - started)
        except asyncio.CancelledError:
            await asyncio.shield(self.kill())
            raise
        if isinstance(reply, Refusal) and reply.fatal:
            await self.kill()
        return Completed(reply, time.monotonic() - started)

    async def kill(self) -> None:
        """End the worker and all its descendants, and wait until they are gone."""
        self.usable = False
        async with self._killed:
            if self.lifeline < 0:
                return
            if self.process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    # Popen.send_signal would reap the process before asyncio's watcher can.
                    os.kill(self.process.pid, signal.SIGTERM)
            os.close(self.lifeline)
            self.lifeline = -1
            try:
                await asyncio.wait_for(self.process.wait(), _KILL_SECONDS)
            except asyncio.TimeoutError:  # noqa: UP041
                self._kill_group(self.process.pid)
                await self.process.wait()
            if self.group is not None:
                self._kill_group(self.group)
            self.writer.close()
            await self.log.close()

    @staticmethod
    def _kill_group(group: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)

    async def greet(self, stage: str) -> None:
        """Read the worker's first two lines. Raises StartError."""
        try:
            hello: Hello = from_line(Hello, await self._line())
            self.group = hello.group
            if hello.problem:
                raise StartError(hello.problem)
            if (hello.protocol, hello.stage) != (PROTOCOL, stage):
                raise StartError(f"the worker speaks {hello.protocol} from {hello.stage}")
            from_line(Ready, await self._line())
        except (OSError, WireError, EOFError) as error:
            await self.kill()
            raise StartError(self._detail(error)) from error

    async def _ask(self, job: Job) -> Reply:
        request = Request(secrets.token_hex(16), job)
        self.writer.write(to_line(request))
        await self.writer.drain()
        response: Response = from_line(Response, await self._line())
        if response.id != request.id:
            raise WireError("the worker answered another request")
        return response.reply

    async def _line(self) -> bytes:
        try:
            line = await self.reader.readline()
        except ValueError as error:
            raise WireError("the worker sent an endless line") from error
        if not line.endswith(b"\n"):
            raise EOFError("the worker's channel closed")
        return line

    def _detail(self, error: Exception) -> str:
        code = self.process.returncode
        end = str(error) if code is None or code < 0 else f"the worker ended with {_status(code)}"
        return f"{end}\n{self.log.tail()}".strip()


async def start(recipe: Recipe) -> WorkerProcess:
    """Start a worker and wait until it is ready. Raises StartError."""
    worker = await _spawn(recipe)
    try:
        await asyncio.wait_for(worker.greet(recipe.stage.name), _START_SECONDS)
    except asyncio.TimeoutError as error:  # noqa: UP041
        await worker.kill()
        raise StartError(f"not ready after {_START_SECONDS:.0f} s") from error
    except BaseException:
        await asyncio.shield(worker.kill())
        raise
    return worker


async def _spawn(recipe: Recipe) -> WorkerProcess:
    lifeline_read, lifeline_write = os.pipe()
    try:
        return await _connect(recipe, lifeline_read, lifeline_write)
    except BaseException:
        os.close(lifeline_write)  # whatever was started ends itself
        raise
    finally:
        os.close(lifeline_read)


async def _connect(recipe: Recipe, lifeline_read: int, lifeline_write: int) -> WorkerProcess:
    ours, theirs = socket.socketpair()
    log_read, log_write = os.pipe()
    try:
        process = await asyncio.create_subprocess_exec(
            recipe.python,
            str(recipe.stage / "boot.py"),
            _options(recipe, theirs.fileno(), lifeline_read),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log_write,
            stderr=log_write,
            pass_fds=(theirs.fileno(), lifeline_read),
            start_new_session=True,
            cwd=recipe.root,
            env=recipe.environment,
        )
    except BaseException as error:
        ours.close()
        os.close(log_read)
        if isinstance(error, OSError):
            message = f"{recipe.python} cannot be started: {error.strerror}"
            raise StartError(message) from error
        raise
    finally:
        theirs.close()
        os.close(log_write)
    log = await _Log.open(log_read)
    reader, writer = await asyncio.open_connection(sock=ours, limit=LARGEST_MESSAGE_BYTES)
    return WorkerProcess(process, reader, writer, lifeline_write, log)


def _options(recipe: Recipe, channel: int, lifeline: int) -> str:
    """The worker's only argument."""
    return json.dumps(
        {
            "socket": channel,
            "lifeline": lifeline,
            "parent": os.getpid(),
            "root": str(recipe.root),
            "warm": recipe.warm,
            "nice": recipe.nice,
            "memory_bytes": recipe.memory_bytes,
            "file_bytes": recipe.file_bytes,
        }
    )


class _Log:
    """Drains what a worker prints and remembers the end of it."""

    def __init__(self) -> None:
        self._chunks: deque[bytes] = deque(maxlen=16)
        self._task: asyncio.Task[None] | None = None
        self._transport: asyncio.ReadTransport | None = None

    @classmethod
    async def open(cls, descriptor: int) -> _Log:
        log = cls()
        reader = asyncio.StreamReader()
        log._transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb", 0)
        )
        log._task = asyncio.create_task(log._drain(reader))
        return log

    async def _drain(self, reader: asyncio.StreamReader) -> None:
        while chunk := await reader.read(_LOG_TAIL_BYTES):
            self._chunks.append(chunk)

    async def close(self) -> None:
        """Read what is left, for a moment, and stop: a stranger may still hold the pipe."""
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=0.2)
            self._task.cancel()
        if self._transport is not None:
            self._transport.close()

    def tail(self) -> str:
        """The last characters that the worker printed."""
        return b"".join(self._chunks).decode(errors="replace")[-_DETAIL_CHARACTERS:]


def _status(code: int) -> str:
    if code <= 128:
        return f"exit status {code}"
    try:
        return signal.Signals(code - 128).name
    except ValueError:
        return f"exit status {code}"
