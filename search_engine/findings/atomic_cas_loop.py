"""An atomic that the target lacks, so that it runs as a loop of compare-and-swap.

Cause
    The hardware adds some types atomically and others not: 16-bit floats on older parts, maxima of
    floats, 64-bit forms. What it lacks is emulated: read, compute, compare-and-swap, and again if
    another thread came first.

Fix
    Accumulate in a type that the hardware has (fp32 or int32) and convert afterwards, or write
    partial results that a second kernel combines.

Shown when
    The machine code of an atomic that is not written as `tl.atomic_cas` holds compare-and-swap
    instructions.

False positives
    Where threads hardly ever meet on one address, the loop runs once and costs little more than the
    atomic itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from search_engine.domain.code import LaunchCode, LineCode, MachineOperation
from search_engine.domain.finding import Finding, Severity
from search_engine.findings._base import Subject, finding
from search_engine.findings._code import (
    assuming,
    budget,
    hottest,
    issue_seconds,
    one_per_line,
    weight_of,
)
from search_engine.findings._source import calls_at

_TURN_SLOTS = 300.0
"""A round trip to the L2 cache, which the atomic itself would not wait for."""


class AtomicCasLoop:
    """Emulated atomics."""

    code = "KL114"
    name = "atomic-cas-loop"
    severity = Severity.HINT
    shown = True

    def findings(self, subject: Subject) -> Iterator[Finding]:
        """One for each line."""
        yield from one_per_line(
            found
            for launch in subject.launches
            for code, _ in hottest(subject, launch, MachineOperation.ATOMIC_CAS)
            for found in self._judge(subject, launch, code)
        )

    def _judge(self, subject: Subject, launch: LaunchCode, code: LineCode) -> Iterator[Finding]:
        if code.line is None:
            return
        written = sorted(n for n in calls_at(subject, code.line) if n.startswith("atomic_"))
        if not written or "atomic_cas" in written:
            return
        yield finding(
            self,
            subject,
            subject.line_span(code.line),
            f"`{written[0]}` becomes a compare-and-swap loop on {subject.target.name}"
            f"{assuming(launch)}",
            _cost(subject, launch, code),
            facts={"loops": code.count(MachineOperation.ATOMIC_CAS)},
        )


def _cost(subject: Subject, launch: LaunchCode, code: LineCode) -> float:
    lanes = launch.facts.warps * subject.target.warp_size
    count = weight_of(subject, code) * code.count(MachineOperation.ATOMIC_CAS)
    waiting = issue_seconds(subject.target, count * _TURN_SLOTS * lanes)
    return waiting / (waiting + budget(subject, launch).total)
