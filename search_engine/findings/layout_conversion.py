"""A block that changes its layout through shared memory in every iteration of a loop.

Cause
    Operations want the elements of a block spread over the threads in different ways: wide loads in
    rows, the matrix unit in its own tiles, a reduction along its axis. Between two ways the block
    goes through shared memory, with a barrier before and after.

Fix
    Move what changes the layout out of the loop: keep the accumulator in one form and transpose,
    reduce or store it once behind the loop. Load an operand in the order in which it is used
    instead of `tl.trans` after the load. Often a different block shape or number of warps avoids
    the conversion.

Shown when
    The compiler's last device-level form converts at least 1 KiB inside a loop through shared
    memory, and this takes an estimated 5 % of the loop's time or more.

False positives
    Some conversions are needed, as between two chained products. The finding tells where one is and
    how large, not that it can be avoided.
"""

from __future__ import annotations

from collections.abc import Iterator

from search_engine.domain.code import LaunchCode, LayoutConversion
from search_engine.domain.finding import Finding, Severity
from search_engine.findings._base import Subject, finding
from search_engine.findings._code import (
    assuming,
    budget,
    issue_seconds,
    kibibytes,
    loop_weight,
    one_per_line,
)

_LEAST_BYTES = 1024
_LEAST_COST = 0.05
_SLOTS_PER_BYTE = 1.0
"""Written and read at 128 bytes a cycle, while a processor has 128 issue slots a cycle; less what
a wide access saves and more what the barriers cost."""


class LayoutConversionCheck:
    """Conversions through shared memory inside loops."""

    code = "KL113"
    name = "layout-conversion"
    severity = Severity.HINT
    shown = True

    def findings(self, subject: Subject) -> Iterator[Finding]:
        """One for each line."""
        yield from one_per_line(
            found
            for launch in subject.launches
            for item in launch.conversions
            for found in self._judge(subject, launch, item)
        )

    def _judge(
        self, subject: Subject, launch: LaunchCode, item: LayoutConversion
    ) -> Iterator[Finding]:
        if item.line is None or not item.loop_depth or item.bytes < _LEAST_BYTES:
            return
        cost = _cost(subject, launch, item)
        if not subject.in_unit(item.line) or cost < _LEAST_COST:
            return
        yield finding(
            self,
            subject,
            subject.line_span(item.line),
            f"layout of {kibibytes(item.bytes)} converted through shared memory in each iteration"
            f"{assuming(launch)}",
            cost,
            facts={"bytes": item.bytes, "loop_depth": item.loop_depth},
        )


def _cost(subject: Subject, launch: LaunchCode, item: LayoutConversion) -> float:
    executions = loop_weight(subject, item.line, item.loop_depth)
    slots = 2 * item.bytes * _SLOTS_PER_BYTE * executions
    return budget(subject, launch).saving(issue=issue_seconds(subject.target, slots))
