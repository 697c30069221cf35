"""The protocol between an executor and a worker: JSON lines over two private descriptors.

The executor writes requests to one pipe and reads replies from another; their numbers travel in
the worker's arguments. The worker's standard output is never trusted. Request ids are random, so
that a candidate that finds the reply descriptor still cannot forge an answer to a request that it
has not seen. Standard library only: this file is staged into the user's interpreter.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from search_engine.domain.codec import decode, encode
from search_engine.domain.job import Job, Reply

PROTOCOL = 1
"""Raised whenever a message changes in a way that older code cannot read."""

LARGEST_MESSAGE_BYTES = 256 * 1024 * 1024
"""A longer line is not a message: its sender is treated as dead."""


class WireError(ValueError):
    """A line that is not the message it should be."""


@dataclasses.dataclass(frozen=True, slots=True)
class Hello:
    """The first line of a worker. ``problem`` says why it cannot work, or is empty.

    ``group`` is the process group of the worker and everything it starts.
    """

    protocol: int
    stage: str
    python: str
    group: int
    problem: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Ready:
    """The second line of a worker: its modules are imported."""

    warm: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Request:
    """One job."""

    id: str
    job: Job


@dataclasses.dataclass(frozen=True, slots=True)
class Response:
    """The reply to the request of the same id, and how long the worker took."""

    id: str
    reply: Reply
    seconds: float


def to_line(message: Hello | Ready | Request | Response) -> bytes:
    """One message as one line of JSON, newline included."""
    return json.dumps(encode(message), separators=(",", ":")).encode() + b"\n"


def from_line(kind: type[Any], line: bytes) -> Any:
    """Read a line as a message of type ``kind``. Raises WireError."""
    try:
        return decode(kind, json.loads(line))
    except (ValueError, TypeError, RecursionError) as error:
        raise WireError(f"not a {kind.__name__}: {line[:200]!r} ({error})") from error
