"""Lanes of a warp that ask one bank of shared memory for different words.

Cause
    Shared memory has 32 banks of 4 bytes. Each answers one word a cycle, so lanes whose addresses
    are a multiple of 128 bytes apart wait for each other. Blocks that are written in one order and
    read in another are arranged to avoid that, but not in every case: operands of a product on the
    FMA pipe, 8-bit operands that must be transposed, reductions over the first axis.

Fix
    Load the operand in the order in which it is used, let the product run on the matrix unit, or
    try another block shape or number of warps.

Shown when
    The addresses of a line's shared accesses can be worked out from the compiler's PTX, they take
    twice the cycles that they need or more in a loop (or a thousand cycles outside one), and this
    costs an estimated 5 % of the kernel's time.

False positives
    Accesses that wait for memory or for the matrix unit anyway hide conflicts; the estimate counts
    that. Nothing is said for AMD, or where an address depends on data.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from search_engine.domain.code import LaunchCode, SharedAccess
from search_engine.domain.finding import Finding, Severity
from search_engine.findings._base import Subject, finding
from search_engine.findings._code import (
    assuming,
    budget,
    issue_seconds,
    loop_weight,
    one_per_line,
)

_LEAST_FACTOR = 2.0
_LEAST_COST = 0.05
_LEAST_CYCLES = 1_000
"""Of a program outside loops: its first load takes as long."""
_LANES_A_CYCLE = 128
"""Issue slots of a processor in the cycle that one more wavefront takes."""


class BankConflict:
    """Shared accesses that are served one after another."""

    code = "KL108"
    name = "bank-conflict"
    severity = Severity.HINT
    shown = True

    def findings(self, subject: Subject) -> Iterator[Finding]:
        """One for each line."""
        yield from one_per_line(
            found
            for launch in subject.launches
            for line in sorted({item.line for item in launch.shared if item.line is not None})
            for found in self._judge(subject, launch, line)
        )

    def _judge(self, subject: Subject, launch: LaunchCode, line: int) -> Iterator[Finding]:
        here = [item for item in launch.shared if item.line == line and _matters(launch, item)]
        if not here or not subject.in_unit(line):
            return
        cost = _cost(subject, launch, here)
        if cost < _LEAST_COST:
            return
        taken = sum(item.wavefronts for item in here)
        least = sum(item.least_wavefronts for item in here)
        kinds = {item.store for item in here}
        noun = "accesses" if len(kinds) == 2 else "stores" if True in kinds else "loads"
        yield finding(
            self,
            subject,
            subject.line_span(line),
            f"{round(taken / least)}-way bank conflict: shared {noun} take {taken:,} cycles a "
            f"warp, not {least:,}{assuming(launch)}",
            cost,
            facts={"wavefronts": taken, "least_wavefronts": least},
        )


def _matters(launch: LaunchCode, item: SharedAccess) -> bool:
    if item.wavefronts < _LEAST_FACTOR * item.least_wavefronts:
        return False
    more = (item.wavefronts - item.least_wavefronts) * launch.facts.warps
    return item.loop_depth > 0 or more >= _LEAST_CYCLES


def _cost(subject: Subject, launch: LaunchCode, here: list[SharedAccess]) -> float:
    more = sum(
        loop_weight(subject, item.line, item.loop_depth) * (item.wavefronts - item.least_wavefronts)
        for item in here
    )
    waiting = issue_seconds(subject.target, more * launch.facts.warps * _LANES_A_CYCLE)
    whole = budget(subject, launch)
    return replace(whole, issue=whole.issue + waiting).saving(issue=waiting)
