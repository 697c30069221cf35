"""Constant memory read at an address that each thread computes.

Cause
    The constant cache answers one address a cycle. If the threads of a warp ask for different ones,
    the read is repeated for each: up to 32 times.

Fix
    Read such a table from global memory, where neighbours are cheap, or keep it in registers or
    shared memory.

Shown when
    Never unless asked for: the machine code tells that the address is computed, but not whether it
    differs between threads. Lines of library functions are left out.

False positives
    An index that is the same for all threads of a warp costs nothing extra.
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
    plural,
    weight_of,
)
from search_engine.findings._source import has_slow_path

_LEAST_COST = 0.02


class DivergentConstantAccess:
    """Indexed constant loads; off, since their cost depends on the index."""

    code = "KL115"
    name = "divergent-constant-access"
    severity = Severity.HINT
    shown = False

    def findings(self, subject: Subject) -> Iterator[Finding]:
        """One for each line."""
        yield from one_per_line(
            found
            for launch in subject.launches
            for code, _ in hottest(subject, launch, MachineOperation.CONSTANT_LOAD)
            for found in self._judge(subject, launch, code)
        )

    def _judge(self, subject: Subject, launch: LaunchCode, code: LineCode) -> Iterator[Finding]:
        if code.line is None or has_slow_path(subject, code.line):
            return
        cost, count = _cost(subject, launch, code), code.count(MachineOperation.CONSTANT_LOAD)
        if cost < _LEAST_COST:
            return
        lanes = subject.target.warp_size
        yield finding(
            self,
            subject,
            subject.line_span(code.line),
            f"constant memory read at computed addresses: {plural(count, 'load')}, each up to "
            f"{lanes} times{assuming(launch)}",
            cost,
            facts={"loads": count, "lanes": lanes},
        )


def _cost(subject: Subject, launch: LaunchCode, code: LineCode) -> float:
    """If half of the threads of a warp ask for different addresses."""
    lanes = launch.facts.warps * subject.target.warp_size
    slots = weight_of(subject, code) * code.count(MachineOperation.CONSTANT_LOAD)
    repeated = slots * subject.target.warp_size / 2
    return budget(subject, launch).saving(issue=issue_seconds(subject.target, repeated * lanes))
