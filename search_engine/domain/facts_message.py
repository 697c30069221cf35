"""Messages between the language server and its facts host: one JSON object a line.

The server writes requests to the host's standard input and reads answers from its standard output.
A request for a file is answered by ``StaticFindings`` at once, one ``UnitFindings`` per kernel and
target as facts arrive, in any order, and one ``Done`` last. ``kind`` tells the messages apart.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from search_engine.domain.codec import decode, encode
from search_engine.domain.finding import Finding, Severity
from search_engine.domain.job import Refusal
from search_engine.domain.summary import KernelSummary

LARGEST_LINE_BYTES = 64 * 1024 * 1024
"""A longer line is no message; readers use it as the limit of their buffer."""


class FactsMessageError(ValueError):
    """A line that is not the message it should be."""


@dataclass(frozen=True, slots=True)
class FactsRequest:
    """Everything that can be found in one file. ``text`` is the buffer's, which may be unsaved.

    ``targets`` are names of the registry, empty for the default one. ``kernels`` are qualified
    names, None for all of the file. ``python``, ``cwd`` and ``env`` are the settings
    ``kernelLsp.worker.*``; None and empty for what is found. ``ignore`` holds codes or names of
    findings. With ``everything``, checks that are off by default run too, and findings whose cost
    is negligible stay. Without ``compile`` nothing is executed: ``StaticFindings`` and ``Done``.
    """

    id: str
    path: str
    root: str
    """The workspace folder."""
    text: str
    targets: tuple[str, ...] = ()
    python: str | None = None
    cwd: str | None = None
    env: dict[str, str] = field(default_factory=dict[str, str])
    kernels: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    everything: bool = False
    compile: bool = True


@dataclass(frozen=True, slots=True)
class ListingRequest:
    """The machine code of one kernel of ``file`` for one target; answered by ``ListingFound``.

    ``file.targets``, ``file.kernels`` and ``file.ignore`` are not looked at.
    """

    id: str
    file: FactsRequest
    kernel: str
    """Qualified name."""
    target: str
    line: int | None = None
    """0-based; the row of the listing that the answer points at belongs to it."""


@dataclass(frozen=True, slots=True)
class CancelRequest:
    """Drop what has not been started for the request ``id``; its ``Done`` still comes."""

    id: str


FactsHostRequest: TypeAlias = FactsRequest | ListingRequest | CancelRequest


@dataclass(frozen=True, slots=True)
class StaticFindings:
    """Findings of the whole file that stand without facts. A later one replaces the former."""

    id: str
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class UnitFindings:
    """One kernel for one target, complete: it replaces what was known of both.

    ``findings`` are in line order. ``refusal`` says why there are no facts, where there are none;
    a compile error also stands in ``findings``. ``notes`` are sentences on what could not be
    learnt and what was assumed.
    """

    id: str
    kernel: str
    """Qualified name."""
    unit_hash: str
    target: str
    summary: KernelSummary | None
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()
    refusal: Refusal | None = None


@dataclass(frozen=True, slots=True)
class ListingFound:
    """Annotated machine code; ``lines[i]`` is the 0-based line of the text of row i.

    ``row`` is the first row of the line that was asked for. With ``problem``, a sentence, the text
    is empty.
    """

    id: str
    kernel: str
    target: str
    text: str = ""
    lines: tuple[int | None, ...] = ()
    row: int | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """Nothing more comes for this request. ``problem`` says why it could not be served."""

    id: str
    cancelled: bool = False
    problem: str | None = None


FactsHostAnswer: TypeAlias = StaticFindings | UnitFindings | ListingFound | Done

_REQUESTS: dict[str, type[Any]] = {
    "facts": FactsRequest,
    "listing": ListingRequest,
    "cancel": CancelRequest,
}
_ANSWERS: dict[str, type[Any]] = {
    "static": StaticFindings,
    "unit": UnitFindings,
    "listing": ListingFound,
    "done": Done,
}
_KINDS = {kind: name for table in (_REQUESTS, _ANSWERS) for name, kind in table.items()}


def to_line(message: FactsHostRequest | FactsHostAnswer) -> bytes:
    """One message as one line of JSON, newline included."""
    data = {**encode(message), "kind": _KINDS[type(message)]}
    return json.dumps(data, separators=(",", ":")).encode() + b"\n"


def request_from_line(line: bytes) -> FactsHostRequest:
    """Read a request. Raises FactsMessageError."""
    return _from_line(_REQUESTS, line)


def answer_from_line(line: bytes) -> FactsHostAnswer:
    """Read an answer. Raises FactsMessageError."""
    return _from_line(_ANSWERS, line)


def top_findings(findings: tuple[Finding, ...], most: int = 5) -> tuple[Finding, ...]:
    """What an editor shows of one kernel: every Warning, then the costliest, in line order."""
    warnings = [item for item in findings if item.severity is Severity.WARNING]
    others = [item for item in findings if item.severity is not Severity.WARNING]
    others.sort(key=lambda item: (-item.cost, item.line, item.code))
    return tuple(sorted((*warnings, *others[:most]), key=lambda item: (item.line, item.code)))


def _from_line(kinds: dict[str, type[Any]], line: bytes) -> Any:
    try:
        data = cast("dict[str, Any]", json.loads(line))
        return decode(kinds[data["kind"]], data)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise FactsMessageError(f"not a message: {line[:200]!r} ({error!r})") from error
