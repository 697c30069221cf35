"""An array that is indexed at run time and therefore lives in local memory.

Cause
    Registers have no addresses. An array of a thread whose index is only known at run time is kept
    in local memory, and each access becomes a load or store.

Fix
    Make the index known: a `tl.static_range` loop, a chain of `tl.where`, or one case per value.
    Where that is not possible, shared or global memory is often faster.

Shown when
    Loads or stores of local memory that are no spills stand on a line and take an estimated 1 % of
    the kernel's time or more.

False positives
    Library functions keep tables on purpose: the slow path of sine, cosine and tangent does so for
    arguments that hardly occur (triton issue 1756). Lines that call such functions are left out.
"""

from __future__ import annotations

from collections.abc import Iterator

from search_engine.domain.code import LaunchCode, LineCode
from search_engine.domain.finding import Finding, Severity
from search_engine.findings._base import Subject, finding
from search_engine.findings._code import (
    LOCAL_ACCESSES,
    assuming,
    budget,
    bytes_of,
    hottest,
    issue_seconds,
    kibibytes,
    one_per_line,
    slots_of,
    weight_of,
)
from search_engine.findings._source import has_slow_path

_LEAST_COST = 0.01


class LocalArray:
    """Local memory that is no spill."""

    code = "KL103"
    name = "local-array"
    severity = Severity.HINT
    shown = True

    def findings(self, subject: Subject) -> Iterator[Finding]:
        """One for each line with such accesses."""
        yield from one_per_line(
            found
            for launch in subject.launches
            for code, _ in hottest(subject, launch, *LOCAL_ACCESSES)
            for found in self._judge(subject, launch, code)
        )

    def _judge(self, subject: Subject, launch: LaunchCode, code: LineCode) -> Iterator[Finding]:
        if code.line is None or has_slow_path(subject, code.line):
            return
        cost = _cost(subject, launch, code)
        if cost < _LEAST_COST:
            return
        moved, count = bytes_of(code, *LOCAL_ACCESSES), code.count(*LOCAL_ACCESSES)
        yield finding(
            self,
            subject,
            subject.line_span(code.line),
            f"array indexed at run time lives in local memory ({count:,} accesses, "
            f"{kibibytes(moved)} per thread){assuming(launch)}",
            cost,
            facts={"accesses": count, "bytes": moved, "loop_depth": code.loop_depth},
        )


def _cost(subject: Subject, launch: LaunchCode, code: LineCode) -> float:
    lanes = launch.facts.warps * subject.target.warp_size
    items = [item for item in code.counts if item.operation in LOCAL_ACCESSES]
    slots = weight_of(subject, code) * sum(slots_of(item, subject.target) for item in items)
    return budget(subject, launch).saving(issue=issue_seconds(subject.target, slots * lanes))
