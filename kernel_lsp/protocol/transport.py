"""Frames over standard input and output.

One thread reads whole frames and hands them to the loop, so a message costs one thread switch and
not one for each header line. Header names are read in any case, as the specification of the header
(that of HTTP) says.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import BinaryIO

LIMIT_BYTES = 256 * 2**20
"""Longest body that is read; a longer one is a broken header."""


class FrameReader:
    """Splits a byte stream into bodies. Pure: ``feed`` bytes, get bodies."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._wanted: int | None = None

    def feed(self, data: bytes) -> list[bytes]:
        """Bodies that are complete now. A header block without a usable length is dropped."""
        self._buffer += data
        bodies: list[bytes] = []
        while (body := self._next()) is not None:
            bodies.append(body)
        return bodies

    def _next(self) -> bytes | None:
        while self._wanted is None:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                return None
            header = bytes(self._buffer[:end])
            del self._buffer[: end + 4]
            self._wanted = _content_length(header)
        if len(self._buffer) < self._wanted:
            return None
        body = bytes(self._buffer[: self._wanted])
        del self._buffer[: self._wanted]
        self._wanted = None
        return body


class FrameWriter:
    """pygls' writer interface on a binary stream."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def write(self, data: bytes) -> None:
        """Write and flush. Raises OSError or ValueError if the editor is gone."""
        self._stream.write(data)
        self._stream.flush()

    def close(self) -> None:
        """Nothing: the process ends instead."""


def read_frames(
    descriptor: int, frame: Callable[[bytes], None], end: Callable[[], None]
) -> threading.Thread:
    """Read frames in a daemon thread; ``end`` is called once, at the end of the stream."""

    def read() -> None:
        reader = FrameReader()
        while data := _read_some(descriptor):
            for body in reader.feed(data):
                frame(body)
        end()

    thread = threading.Thread(target=read, name="frames", daemon=True)
    thread.start()
    return thread


def _read_some(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 2**16)
    except OSError:
        return b""


def _content_length(header: bytes) -> int | None:
    for line in header.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower().endswith(b"content-length") and value.strip().isdigit():
            length = int(value)
            return length if length <= LIMIT_BYTES else None
    return None
