"""An integer division by a value that the compiler does not know, for each element.

Cause
    There is no integer division instruction. A quotient or remainder takes about 20 instructions in
    32 bits and about 70 in 64, for every element that is indexed with it.

Fix
    Give the dimensions a grid axis or a loop of their own, so that nothing needs to be divided; or
    divide once per program instead of once per element; or make the divisor a `tl.constexpr`, which
    turns the division into a multiplication, or into a shift for a power of two.

Shown when
    A statement with `//`, `%` or `cdiv` holds two or more division sequences a thread, or one in a
    loop, and they take an estimated 3 % of the kernel's time or more.

False positives
    Divisions of a program id are done once a program and are not shown. In a kernel that memory
    limits they hide behind the loads; the estimate counts that.
"""

from __future__ import annotations

import ast
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
    plural,
    weight_of,
)
from search_engine.findings._source import divisors_at

_LEAST_COST = 0.03
_SLOTS = 20.0
"""Issue slots of one 32-bit division sequence."""


class IntegerDivision:
    """Division sequences in the machine code of a dividing statement."""

    code = "KL112"
    name = "integer-division"
    severity = Severity.HINT
    shown = True

    def findings(self, subject: Subject) -> Iterator[Finding]:
        """One for each line."""
        yield from one_per_line(
            found
            for launch in subject.launches
            for code, _ in hottest(subject, launch, MachineOperation.INTEGER_DIVISION)
            for found in self._judge(subject, launch, code)
        )

    def _judge(self, subject: Subject, launch: LaunchCode, code: LineCode) -> Iterator[Finding]:
        count = code.count(MachineOperation.INTEGER_DIVISION)
        divisors = divisors_at(subject, code.line) if code.line is not None else ()
        if code.line is None or not divisors or (count < 2 and not code.loop_depth):
            return
        cost = _cost(subject, launch, code)
        if cost < _LEAST_COST:
            return
        names = [node for node in divisors if isinstance(node, ast.Name)]
        by = f" by `{names[0].id}`" if len(names) == len(divisors) == 1 else ""
        where = " in each iteration" if code.loop_depth else ""
        yield finding(
            self,
            subject,
            subject.line_span(code.line),
            f"{plural(count, 'integer division')}{by} per thread{where}{assuming(launch)}",
            cost,
            facts={"divisions": count, "loop_depth": code.loop_depth},
        )


def _cost(subject: Subject, launch: LaunchCode, code: LineCode) -> float:
    lanes = launch.facts.warps * subject.target.warp_size
    slots = weight_of(subject, code) * code.count(MachineOperation.INTEGER_DIVISION) * _SLOTS
    return budget(subject, launch).saving(issue=issue_seconds(subject.target, slots * lanes))
