"""What a check sees and what it answers.

A check is one file with one class that satisfies ``Check`` and one line in ``registry.py``. Checks
are pure: the same subject gives the same findings. The file's docstring is its help page, under the
headings Cause, Fix, Shown when, False positives.
"""

from __future__ import annotations

import bisect
import functools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from search_engine.domain.access import LaunchTrace
from search_engine.domain.code import LaunchCode
from search_engine.domain.finding import Finding, Related, Severity
from search_engine.domain.kernel import Module, Operation, Span, Unit
from search_engine.domain.target import Target
from search_engine.domain.workload import Case, Workload


@dataclass(frozen=True)
class Subject:
    """One unit with everything known about it for one target.

    ``launches`` and ``traces`` are those of the unit's own kernel, at the case with the largest
    weight; both are empty where nothing could be compiled or traced. Without a workload the
    launches are assumed and there are no traces.
    """

    module: Module
    unit: Unit
    target: Target
    workload: Workload | None
    case: Case | None
    launches: tuple[LaunchCode, ...] = ()
    traces: tuple[LaunchTrace, ...] = ()

    @property
    def assumed(self) -> bool:
        """True if the launches were inferred from the text."""
        return any(launch.assumed for launch in self.launches)

    @functools.cached_property
    def line_starts(self) -> tuple[int, ...]:
        """Byte offset of each line of the text."""
        data = self.module.text.encode()
        return (0, *(i + 1 for i, byte in enumerate(data) if byte == 0x0A))

    def line_span(self, line: int) -> Span:
        """The code of a line, without its indentation and comment-free end of line."""
        data = self.module.text.encode()
        start = self.line_starts[line]
        end = self.line_starts[line + 1] - 1 if line + 1 < len(self.line_starts) else len(data)
        raw = data[start:end]
        first = start + len(raw) - len(raw.lstrip())
        return Span(first, max(first, start + len(raw.rstrip())), line, line)

    def operation_at(self, line: int) -> Operation | None:
        """The load, store, dot or reduction of the kernel or a helper whose lines hold ``line``."""
        kernels = (self.unit.kernel, *self.unit.helpers)
        found = [
            operation
            for kernel in kernels
            for operation in kernel.operations
            if operation.span.line <= line <= operation.span.end_line
        ]
        return min(found, key=lambda item: item.span.end - item.span.start, default=None)

    def line_of(self, offset: int) -> int:
        """0-based line of a byte offset."""
        return max(0, bisect.bisect_right(self.line_starts, offset) - 1)

    def in_unit(self, line: int) -> bool:
        """True if the line belongs to the kernel, a helper or the entry."""
        return any(span.line <= line <= span.end_line for span in self.unit.spans)


class Check(Protocol):
    """Makes the findings of one code."""

    code: str
    """Stable: ``KL102``. A number is never used again."""
    name: str
    """Kebab case: ``register-spill``."""
    severity: Severity
    shown: bool
    """False for a check that is off unless asked for, because too few of its findings hold."""

    def findings(self, subject: Subject) -> Iterable[Finding]:
        """Every place where it holds, at most one per line."""
        ...


def finding(
    check: Check,
    subject: Subject,
    span: Span,
    message: str,
    cost: float,
    *,
    facts: dict[str, float | int | str] | None = None,
    related: tuple[Related, ...] = (),
    rule: str | None = None,
) -> Finding:
    """A finding of ``check`` at ``span``."""
    return Finding(
        path=subject.module.path,
        line=span.line,
        end_line=span.end_line,
        start=span.start,
        end=span.end,
        kernel=subject.unit.kernel.qualified_name,
        code=check.code,
        name=check.name,
        severity=check.severity,
        message=message,
        target=subject.target.name,
        facts=facts or {},
        cost=max(0.0, min(1.0, cost)),
        related=related,
        rule=rule,
        assumed=subject.assumed,
    )
