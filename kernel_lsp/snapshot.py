"""Frozen views of a document: what one analysis of one version found.

Features read snapshots alone, so a request never waits for a parser and never sees half an edit.
"""

from __future__ import annotations

import bisect
import itertools
from dataclasses import dataclass

from kernel_lsp import engine
from kernel_lsp.positions import Encoding, Position, Range, body, split_lines, units
from search_engine.domain.kernel import Kernel, Module, Span, SyntaxProblem, Unit, UnitHash
from search_engine.domain.workload import Workload, WorkloadProblem


@dataclass(frozen=True, slots=True)
class UnitView:
    """A unit with what its declaration says."""

    unit: Unit
    workload: Workload | None
    problems: tuple[WorkloadProblem, ...]
    """Mistakes in the declaration of this unit's entry."""
    syntax: SyntaxProblem | None
    """The first place inside the unit that does not parse."""
    refusal: str | None
    """Why the unit cannot be run with its workload; None if it can be."""

    @property
    def name(self) -> str:
        """Qualified name of the kernel."""
        return self.unit.kernel.qualified_name

    @property
    def hash(self) -> UnitHash:
        """Hash of the unit's syntax; guards every edit."""
        return self.unit.hash


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One version of one document, analysed. ``starts`` are byte offsets of the lines."""

    uri: str
    path: str
    version: int
    text: str
    lines: tuple[str, ...]
    starts: tuple[int, ...]
    module: Module
    units: tuple[UnitView, ...]
    problems: tuple[WorkloadProblem, ...]
    ignored: tuple[engine.IgnoreComment, ...] = ()
    """Comments that hide findings."""

    def unit(self, name: str, unit_hash: str | None = None) -> UnitView | None:
        """The unit of that name; of several the one with ``unit_hash``, else the first."""
        named = [view for view in self.units if view.name == name]
        exact = [view for view in named if view.hash == unit_hash]
        return (exact or named or [None])[0]

    def unit_by_hash(self, unit_hash: str) -> UnitView | None:
        """The first unit with that hash."""
        return next((view for view in self.units if view.hash == unit_hash), None)

    def position(self, offset: int, encoding: Encoding) -> Position:
        """Position of a byte offset of this snapshot's text."""
        line = max(0, bisect.bisect_right(self.starts, offset) - 1)
        content = body(self.lines[line])
        inside = max(0, offset - self.starts[line])
        before = content.encode()[:inside].decode(errors="ignore")
        return Position(line, units(before, encoding))

    def range(self, start: int, end: int, encoding: Encoding) -> Range:
        """Range of the bytes ``[start, end)``."""
        return Range(self.position(start, encoding), self.position(end, encoding))

    def kernel_at(self, line: int) -> Kernel | None:
        """The innermost kernel, helper or not, whose lines hold ``line``."""
        holding = [
            kernel
            for kernel in self.module.kernels
            if self.line_of(kernel.span.start) <= line <= self.line_of(kernel.span.end)
        ]
        return min(holding, key=lambda kernel: kernel.span.end - kernel.span.start, default=None)

    def units_at(self, first: int, last: int) -> tuple[UnitView, ...]:
        """Units whose kernel, or else whose entry, touches the lines ``[first, last]``."""
        by_kernel = [v for v in self.units if self._touches(v.unit.kernel.span, first, last)]
        if by_kernel:
            return tuple(by_kernel)
        entries = [(v, v.unit.entry) for v in self.units]
        return tuple(v for v, e in entries if e and self._touches(e.span, first, last))

    def line_start(self, offset: int) -> int:
        """Byte offset of the start of the line that holds ``offset``."""
        return self.starts[self.line_of(offset)]

    def line_of(self, offset: int) -> int:
        """The line that holds a byte offset."""
        return max(0, bisect.bisect_right(self.starts, offset) - 1)

    def code_of(self, line: int) -> tuple[int, int]:
        """Byte offsets of a line's text, without indentation and line end."""
        text = self.lines[line]
        start = self.starts[line]
        indent = len(text) - len(text.lstrip())
        first = start + len(text[:indent].encode())
        return first, max(first, start + len(text.rstrip().encode()))

    def _touches(self, span: Span, first: int, last: int) -> bool:
        return self.line_of(span.start) <= last and first <= self.line_of(span.end)


def analyse(uri: str, path: str, root: str, version: int, text: str) -> Snapshot:
    """Parse one version. Pure and slow: call it in a thread."""
    lines = tuple(split_lines(text))
    module = engine.parse_module(text, path)
    workloads, problems = engine.workloads_of(module, root)
    units_found = tuple(_view(unit, module, workloads, problems) for unit in module.units)
    ignored = engine.ignore_comments(module)
    return Snapshot(
        uri,
        path,
        version,
        text,
        lines,
        _starts(lines),
        module,
        units_found,
        tuple(problems),
        ignored,
    )


def _view(
    unit: Unit,
    module: Module,
    workloads: tuple[Workload, ...],
    problems: tuple[WorkloadProblem, ...],
) -> UnitView:
    entry = unit.entry
    workload = next((w for w in workloads if entry and w.entry == entry.qualified_name), None)
    return UnitView(
        unit,
        workload,
        tuple(problem for problem in problems if _belongs(problem, unit, module)),
        next((p for p in module.problems if _inside(p.span, unit)), None),
        engine.refusal(module, unit, workload),
    )


def _belongs(problem: WorkloadProblem, unit: Unit, module: Module) -> bool:
    """A declaration stands above its entry: the problem belongs to the next entry below it."""
    below = [entry for entry in module.entries if entry.span.start >= problem.start]
    following = min(below, key=lambda entry: entry.span.start, default=None)
    return following is not None and following == unit.entry


def _inside(span: Span, unit: Unit) -> bool:
    return any(part.start <= span.start <= part.end for part in unit.spans)


def _starts(lines: tuple[str, ...]) -> tuple[int, ...]:
    """Byte offsets; for plain ASCII without a step of Python per line, as this runs at each key."""
    ascii_only = all(map(str.isascii, lines))
    sizes = map(len, lines) if ascii_only else (len(line.encode()) for line in lines)
    return (0, *itertools.accumulate(sizes))[: len(lines)]
