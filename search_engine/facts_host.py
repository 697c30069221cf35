"""The facts host: a long-lived process that finds things in files, for the language server.

Requests come as JSON lines on standard input, answers go out as JSON lines on standard output; both
are defined in ``domain/facts_message.py``. Requests are served at once and together: what is known
never waits for what has to be compiled. Workers that nothing was asked of for a while are given up.
End of input means that the server is gone. Then, and on SIGTERM and SIGHUP, every worker is killed
before this process ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
from typing import BinaryIO

from search_engine.domain.facts_message import (
    LARGEST_LINE_BYTES,
    CancelRequest,
    Done,
    FactsHostAnswer,
    FactsHostRequest,
    FactsMessageError,
    FactsRequest,
    ListingFound,
    ListingRequest,
    request_from_line,
    to_line,
)
from search_engine.service import Diagnosis, RequestError, diagnosis, on_termination

log = logging.getLogger(__name__)

_RETIRE_SECONDS = 600.0
"""Idle workers hold some hundred megabytes each, and take seconds to start again."""


def main() -> int:
    """Serve until the server goes away."""
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    channel = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints must not reach the channel
    return asyncio.run(_serve(channel))


async def _serve(channel: BinaryIO) -> int:
    reader = await _stdin()
    async with diagnosis() as service:
        host = _Host(service, channel)
        listening = asyncio.create_task(_listen(reader, host))
        retiring = asyncio.create_task(_retire(service))
        on_termination(listening.cancel)
        with contextlib.suppress(asyncio.CancelledError, BrokenPipeError):
            await listening
        retiring.cancel()
        await host.close()
    return 0


async def _retire(service: Diagnosis) -> None:
    while True:
        await asyncio.sleep(_RETIRE_SECONDS / 10)
        await service.retire(_RETIRE_SECONDS)


async def _listen(reader: asyncio.StreamReader, host: _Host) -> None:
    while line := await _line(reader):
        try:
            host.accept(request_from_line(line))
        except FactsMessageError as error:
            log.warning("%s", error)


async def _line(reader: asyncio.StreamReader) -> bytes:
    """The next line; one that is too long ends the host, as nothing after it can be trusted."""
    try:
        return await reader.readline()
    except ValueError:
        log.exception("a request of more than %d bytes", LARGEST_LINE_BYTES)
        return b""


class _Host:
    """Runs requests and writes their answers."""

    def __init__(self, service: Diagnosis, channel: BinaryIO) -> None:
        self._service = service
        self._channel = channel
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._cancelled: set[str] = set()

    def accept(self, request: FactsHostRequest) -> None:
        """Begin to serve a request, or cancel one."""
        if isinstance(request, CancelRequest):
            if request.id in self._tasks:
                self._cancelled.add(request.id)
            return
        task = asyncio.create_task(self._serve(request))
        self._tasks[request.id] = task
        task.add_done_callback(lambda _: self._finished(request.id, task))

    async def close(self) -> None:
        """Cancel everything and wait for it."""
        tasks = tuple(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, request: FactsRequest | ListingRequest) -> None:
        try:
            if isinstance(request, ListingRequest):
                await self._listing(request)
            else:
                await self._facts(request)
        except RequestError as error:
            self._write(Done(request.id, problem=str(error)))
        except BaseException as error:
            if not isinstance(error, asyncio.CancelledError):
                log.exception("request %s", request.id)
            with contextlib.suppress(BrokenPipeError):
                self._write(Done(request.id, problem=f"fault of the facts host: {error!r}"))
            raise

    async def _facts(self, request: FactsRequest) -> None:
        answers = self._service.answers(request, lambda: request.id in self._cancelled)
        async with contextlib.aclosing(answers):
            async for answer in answers:
                self._write(answer)
        self._write(Done(request.id, cancelled=request.id in self._cancelled))

    async def _listing(self, request: ListingRequest) -> None:
        try:
            found = await self._service.listing(request)
        except RequestError as error:
            found = ListingFound(request.id, request.kernel, request.target, problem=str(error))
        self._write(found)

    def _finished(self, request: str, task: asyncio.Task[None]) -> None:
        if self._tasks.get(request) is task:
            del self._tasks[request]
            self._cancelled.discard(request)
        if not task.cancelled():
            task.exception()  # it was logged and answered

    def _write(self, answer: FactsHostAnswer) -> None:
        self._channel.write(to_line(answer))
        self._channel.flush()


async def _stdin() -> asyncio.StreamReader:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=LARGEST_LINE_BYTES)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin.buffer)
    return reader


if __name__ == "__main__":
    sys.exit(main())
