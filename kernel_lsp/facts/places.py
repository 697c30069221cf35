"""Findings and facts by line, kept apart from any version of a file and placed in another one.

A unit hash says nothing about positions, so facts kept under it hold lines counted from the first
line of the part (kernel, helper, sibling, entry) they belong to. A part that has been reformatted
since has the same words in the same order: a line goes where its first word went.
"""

from __future__ import annotations

import bisect
import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from kernel_lsp.positions import body
from kernel_lsp.snapshot import Snapshot, UnitView
from search_engine.domain.facts_message import UnitFindings
from search_engine.domain.finding import Finding, Related, Severity
from search_engine.domain.kernel import Span
from search_engine.domain.summary import AccessWidth, KernelSummary

_WORD = re.compile(
    r"""\#[^\n]*|
    [rRbBuUfFtT]{0,2}(?:\"{3}(?:[^\\]|\\.)*?\"{3}|'{3}(?:[^\\]|\\.)*?'{3}
        |"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|
    ([^\W\d]\w*|\d[\w.]*)""",
    re.S | re.X,
)
"""Comments and strings, which do not count, and words, which no formatter adds or removes."""

COMPILE_ERROR = "KL101"

_MAPPED_LINES = 2000
"""Longest part whose lines are matched word by word; it is done on the message path."""


@dataclass(frozen=True, slots=True)
class Anchor:
    """A place in a part: lines from the part's first one, bytes from the start of the line."""

    part: str
    line: int
    end_line: int
    column: int
    end_column: int


@dataclass(frozen=True, slots=True)
class KeptFacts:
    """What is known of one unit for one target, for any text that has this unit."""

    answer: UnitFindings
    anchors: tuple[Anchor | None, ...]
    """Of the findings; None for one that is about a line outside the unit."""
    related: tuple[tuple[Anchor | None, ...], ...]
    accesses: tuple[Anchor | None, ...]
    texts: dict[str, tuple[str, ...]]
    """Lines of each part in the text that the facts are from."""


@dataclass(frozen=True, slots=True)
class TargetFacts:
    """Facts of a unit for one target, with lines and bytes of one snapshot."""

    target: str
    summary: KernelSummary | None
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    refusal: str | None
    """Why there are none, or why they are those of an assumed launch."""
    compile_failed: bool = False
    """True if the kernel does not compile."""


def keep(answer: UnitFindings, snapshot: Snapshot, view: UnitView) -> KeptFacts:
    """The facts of ``view`` in ``snapshot``, apart from that text."""
    parts = dict(_parts(view))
    summary = answer.summary
    return KeptFacts(
        answer,
        tuple(_anchor(snapshot, parts, f.start, f.end) for f in answer.findings),
        tuple(
            tuple(_anchor(snapshot, parts, r.start, r.end) for r in f.related)
            for f in answer.findings
        ),
        tuple(
            _line_anchor(snapshot, parts, access.line)
            for access in (summary.accesses if summary else ())
        ),
        {name: _lines(snapshot, span) for name, span in parts.items()},
    )


def place(kept: KeptFacts, snapshot: Snapshot, view: UnitView) -> TargetFacts:
    """The same facts where they belong in ``snapshot``. What has no place there is left out.

    Warnings always have one: the kernel's name, if nothing better is known.
    """
    placer = _Placer(kept, snapshot, view)
    answer = kept.answer
    findings = [
        placer.finding(finding, anchor, related)
        for finding, anchor, related in zip(
            answer.findings, kept.anchors, kept.related, strict=True
        )
    ]
    refusal = answer.refusal
    return TargetFacts(
        answer.target,
        placer.summary(answer.summary) if answer.summary else None,
        tuple(finding for finding in findings if finding is not None),
        answer.notes,
        refusal.message if refusal else None,
        any(finding.code == COMPILE_ERROR for finding in answer.findings),
    )


class _Placer:
    """Places what was kept of one unit in one snapshot."""

    def __init__(self, kept: KeptFacts, snapshot: Snapshot, view: UnitView) -> None:
        self._kept = kept
        self._snapshot = snapshot
        self._name = view.unit.kernel.name_span
        self._parts = dict(_parts(view))

    def finding(
        self, finding: Finding, anchor: Anchor | None, related: tuple[Anchor | None, ...]
    ) -> Finding | None:
        span = self._span(anchor)
        if span is None:
            if finding.severity is not Severity.WARNING:
                return None
            span = self._name
        places = zip(finding.related, related, strict=True)
        return replace(
            finding,
            path=self._snapshot.path,
            line=span.line,
            end_line=span.end_line,
            start=span.start,
            end=span.end,
            related=tuple(r for r in (self._related(*item) for item in places) if r is not None),
        )

    def summary(self, summary: KernelSummary) -> KernelSummary:
        places = zip(summary.accesses, self._kept.accesses, strict=True)
        moved = (self._access(*item) for item in places)
        return replace(summary, accesses=tuple(access for access in moved if access is not None))

    def _related(self, related: Related, anchor: Anchor | None) -> Related | None:
        span = self._span(anchor)
        return None if span is None else Related(span.line, span.start, span.end, related.message)

    def _access(self, access: AccessWidth, anchor: Anchor | None) -> AccessWidth | None:
        span = self._span(anchor)
        return None if span is None else replace(access, line=span.line)

    def _span(self, anchor: Anchor | None) -> Span | None:
        part = self._parts.get(anchor.part) if anchor is not None else None
        if anchor is None or part is None:
            return None
        old, new = self._kept.texts[anchor.part], _lines(self._snapshot, part)
        begin = self._snapshot.line_of(part.start)
        if old == new:
            first, last = begin + anchor.line, begin + anchor.end_line
            starts = self._snapshot.starts
            start, end = starts[first] + anchor.column, starts[last] + anchor.end_column
            return Span(start, end, first, last)
        moved = line_map(old, new)
        if moved is None:
            return None
        return self._code_of(begin + moved[anchor.line], begin + moved[anchor.end_line])

    def _code_of(self, first: int, last: int) -> Span:
        """Whole lines, without indentation and line end."""
        last = max(first, last)
        start, end = self._snapshot.code_of(first)[0], self._snapshot.code_of(last)[1]
        return Span(start, end, first, last)


@functools.lru_cache(64)
def line_map(old: tuple[str, ...], new: tuple[str, ...]) -> tuple[int, ...] | None:
    """Where each line of ``old`` is in ``new``, which differs in comments and formatting only.

    None if the words differ, or if there are too many lines.
    """
    if max(len(old), len(new)) > _MAPPED_LINES:
        return None
    before, after = _word_lines(old), _word_lines(new)
    if len(before) != len(after) or not before:
        return None
    last = len(before) - 1
    return tuple(after[min(last, bisect.bisect_left(before, line))] for line in range(len(old)))


def _word_lines(lines: tuple[str, ...]) -> list[int]:
    """The line of each word."""
    text = "".join(lines)
    ends = [i for i, sign in enumerate(text) if sign == "\n"]
    return [
        bisect.bisect_left(ends, match.start(1))
        for match in _WORD.finditer(text)
        if match.start(1) >= 0
    ]


def _parts(view: UnitView) -> Iterator[tuple[str, Span]]:
    """Spans by name: the order of definitions in a file does not count."""
    unit = view.unit
    for kernel in (unit.kernel, *unit.helpers, *unit.siblings):
        yield f"{kernel.qualified_name}#{kernel.ordinal}", kernel.span
    if unit.entry is not None:
        yield f"{unit.entry.qualified_name}()", unit.entry.span


def _lines(snapshot: Snapshot, span: Span) -> tuple[str, ...]:
    first, last = snapshot.line_of(span.start), snapshot.line_of(max(span.start, span.end - 1))
    return tuple(body(line) + "\n" for line in snapshot.lines[first : last + 1])


def _anchor(snapshot: Snapshot, parts: dict[str, Span], start: int, end: int) -> Anchor | None:
    line, end_line = snapshot.line_of(start), snapshot.line_of(max(start, end - 1))
    for name, span in parts.items():
        first, last = snapshot.line_of(span.start), snapshot.line_of(max(span.start, span.end - 1))
        if first <= line and end_line <= last:
            return Anchor(
                name,
                line - first,
                end_line - first,
                start - snapshot.starts[line],
                end - snapshot.starts[end_line],
            )
    return None


def _line_anchor(snapshot: Snapshot, parts: dict[str, Span], line: int) -> Anchor | None:
    if not 0 <= line < len(snapshot.lines):
        return None
    start = snapshot.starts[line]
    return _anchor(snapshot, parts, start, start)
