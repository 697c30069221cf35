"""Registers that do not suffice, so that values go to local memory and back.

Cause
    A thread holds more values at once than it has registers. The compiler writes some to local
    memory and reads them again: in a loop at every iteration. Blocks that give each thread very
    many elements are the usual cause.

Fix
    Give each thread less: a smaller block, more warps, fewer stages, or several passes over the
    row. Values that are only needed at the end can be loaded or computed there again.

Shown when
    Spill instructions stand in the machine code and take an estimated 1 % of the kernel's time or
    more. Inside a loop they count once for each iteration.

False positives
    Spills are a hint and no verdict: there are kernels whose every configuration spills and whose
    best one does too. A few words outside loops cost nothing and are not shown. The local arrays
    in the slow path of sine and cosine are no spills and are left out.
"""

from __future__ import annotations

from collections.abc import Iterator

from search_engine.domain.code import LaunchCode, LineCode
from search_engine.domain.finding import Finding, Severity
from search_engine.findings._base import Subject, finding
from search_engine.findings._code import (
    SPILLS,
    Budget,
    assuming,
    budget,
    bytes_of,
    hottest,
    issue_seconds,
    kibibytes,
    one_per_line,
    resident,
    slots_of,
    weight_of,
)
from search_engine.findings._source import has_slow_path

_LEAST_COST = 0.01
_CACHE_BYTES = 128 * 1024
"""Local memory of all resident threads that a processor's own cache can hold."""
_BEYOND_CACHE = 2.5
"""L2 bandwidth over memory bandwidth: what the rest of the spilled values costs."""


class RegisterSpill:
    """Spill instructions, at the line that executes most of them."""

    code = "KL102"
    name = "register-spill"
    severity = Severity.HINT
    shown = True

    def findings(self, subject: Subject) -> Iterator[Finding]:
        """One for each launch that spills, on its worst line."""
        yield from one_per_line(
            found for launch in subject.launches for found in self._judge(subject, launch)
        )

    def _judge(self, subject: Subject, launch: LaunchCode) -> Iterator[Finding]:
        lines = [
            code
            for code, _ in hottest(subject, launch, *SPILLS)
            if code.line is not None and not has_slow_path(subject, code.line)
        ]
        cost = _cost(subject, launch, lines, budget(subject, launch))
        if not lines or lines[0].line is None or cost < _LEAST_COST:
            return
        total = sum(bytes_of(code, *SPILLS) for code in lines)
        yield finding(
            self,
            subject,
            subject.line_span(lines[0].line),
            _message(launch, lines, total),
            cost,
            facts={
                "spill_bytes": total,
                "registers": launch.facts.registers,
                "warps": launch.facts.warps,
                "loop_depth": lines[0].loop_depth,
            },
        )


def _message(launch: LaunchCode, lines: list[LineCode], total: int) -> str:
    where = "in the loop" if lines[0].loop_depth else "here"
    most = "" if len({code.line for code in lines}) == 1 else ", most of it " + where
    place = f" {where}" if not most else ""
    registers = f"({launch.facts.registers} registers, {launch.facts.warps} warps)"
    text = f"{kibibytes(total)} spilled per thread{place} {registers}{most}"
    return text + assuming(launch)


def _cost(subject: Subject, launch: LaunchCode, lines: list[LineCode], whole: Budget) -> float:
    lanes = launch.facts.warps * subject.target.warp_size
    slots = moved = footprint = 0.0
    for code in lines:
        weight = weight_of(subject, code)
        items = [item for item in code.counts if item.operation in SPILLS]
        slots += weight * sum(slots_of(item, subject.target) for item in items)
        moved += weight * bytes_of(code, *SPILLS)
        footprint += bytes_of(code, *SPILLS) / 2
    held = footprint * lanes * max(1, resident(subject, launch).blocks)
    missed = max(0.0, 1 - _CACHE_BYTES / held) if held else 0.0
    beyond = missed * moved * lanes / (_BEYOND_CACHE * subject.target.memory_bandwidth.value)
    with_spills = Budget(whole.issue, whole.memory + beyond, whole.matrix)
    return with_spills.saving(issue=issue_seconds(subject.target, slots * lanes), memory=beyond)
