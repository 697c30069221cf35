"""The search host: one search in a process of its own, for the language server.

The request is one JSON line on standard input; events go out as JSON lines on standard output. The
line ``{"cancel": true}`` cancels; end of input means that the server is gone. In these cases, and
on SIGTERM and SIGHUP, every worker is killed before this process ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from typing import Any, BinaryIO

from search_engine.domain.codec import encode
from search_engine.domain.event import SearchEvent
from search_engine.request import RequestError, request_from_json
from search_engine.service import failed_report, on_termination, optimize


def main() -> int:
    """Serve one request."""
    channel = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints must not reach the channel
    return asyncio.run(_serve(channel))


async def _serve(channel: BinaryIO) -> int:
    reader = await _stdin()
    line = await reader.readline()
    if not line:
        return 0

    def emit(event: SearchEvent) -> None:
        channel.write(json.dumps(encode(event)).encode() + b"\n")
        channel.flush()

    try:
        request = request_from_json(json.loads(line))
    except (RequestError, json.JSONDecodeError) as error:
        emit(failed_report(str(error)))
        return 2
    search = asyncio.create_task(optimize(request, emit))
    on_termination(search.cancel)
    watch = asyncio.create_task(_cancelled(reader))
    done, _ = await asyncio.wait({search, watch}, return_when=asyncio.FIRST_COMPLETED)
    if search not in done:
        search.cancel()
    try:
        await search
    except RequestError as error:
        emit(failed_report(str(error)))
        return 2
    except (asyncio.CancelledError, BrokenPipeError):
        return 0
    finally:
        watch.cancel()
    return 0


async def _stdin() -> asyncio.StreamReader:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=64 * 1024 * 1024)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin.buffer)
    return reader


async def _cancelled(reader: asyncio.StreamReader) -> None:
    """Return when the server says cancel or goes away."""
    while line := await reader.readline():
        with contextlib.suppress(json.JSONDecodeError):
            message: Any = json.loads(line)
            if isinstance(message, dict) and message.get("cancel"):  # pyright: ignore
                return


if __name__ == "__main__":
    sys.exit(main())
