"""A kernel that takes seconds to compile, or whose code is too long for the instruction cache.

Cause
    Every thread's elements are written out one after another: a block with hundreds of elements a
    thread, an unrolled loop, a division for each of them. The assembler's time grows faster than
    the code, and long straight code runs from the instruction cache only once.

Fix
    Smaller blocks or more warps; `range` instead of `tl.static_range`; multiply by a reciprocal
    that is computed once instead of dividing each element by the same value.

Shown when
    One launch has 8,192 machine instructions or more, or its compiler was seen to take eight
    seconds or more.

False positives
    A kernel that is compiled once and runs for hours may take its time. Seconds are those of this
    machine, with whatever else it did.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from search_engine.domain.code import LaunchCode, LineCode, MachineOperation
from search_engine.domain.finding import Finding, Severity
from search_engine.findings._base import Subject, finding
from search_engine.findings._code import assuming, one_per_line, plural
from search_engine.findings._source import calls_at, divisors_at, expressions_at

_LEAST_SECONDS = 8.0
_LEAST_INSTRUCTIONS = 8_192
"""128 KiB of code, what the last instruction cache of a processor holds (Jia et al., Dissecting the
NVIDIA Volta GPU Architecture via Microbenchmarking, 2018, and the same sizes since)."""
_STAGES = {"cubin": "ptxas", "hsaco": "the assembler", "llir": "LLVM", "ttgir": "Triton's passes"}
_CACHE_COST = 0.1
"""Of the time of a kernel whose code runs straight through: each instruction is fetched anew."""
_WAITING_COST = 0.03
"""Seconds of compiling take nothing from the kernel's own time: shown, behind all else."""
_MANY = 100
_DIVISIONS = {
    MachineOperation.INTEGER_DIVISION: "integer divisions",
    MachineOperation.SPECIAL: "divisions",
}


_DIVISION_CALLS = frozenset({"div_rn", "fdiv"})
_SPECIAL_FUNCTIONS = frozenset(
    {"exp", "exp2", "log", "log2", "sqrt", "rsqrt", "sin", "cos", "sigmoid", "softmax", "erf"}
)
"""They use the same instructions as a division, which then cannot be counted."""


class SlowCompile:
    """Long code and slow compilers."""

    code = "KL116"
    name = "slow-compile"
    severity = Severity.HINT
    shown = True

    def findings(self, subject: Subject) -> Iterator[Finding]:
        """One for the kernel, on the line with most of the code."""
        yield from one_per_line(
            found for launch in subject.launches for found in self._judge(subject, launch)
        )

    def _judge(self, subject: Subject, launch: LaunchCode) -> Iterator[Finding]:
        seconds = sum(spent for _, spent in launch.stage_seconds)
        instructions = launch.facts.instructions
        if seconds < _LEAST_SECONDS and instructions < _LEAST_INSTRUCTIONS:
            return
        line = _longest(launch)
        where = subject.unit.kernel.name_span if line is None else subject.line_span(line)
        long = instructions >= _LEAST_INSTRUCTIONS
        yield finding(
            self,
            subject,
            where,
            _message(subject, launch, line, seconds) + assuming(launch),
            _CACHE_COST if long else _WAITING_COST,
            facts={"seconds": round(seconds, 1), "instructions": instructions},
        )


def _message(subject: Subject, launch: LaunchCode, line: int | None, seconds: float) -> str:
    instructions = plural(launch.facts.instructions, "instruction")
    cause = _divisions(subject, launch, line)
    if seconds < _LEAST_SECONDS:
        return f"{instructions}, more than the instruction cache holds{cause}"
    stage, spent = max(launch.stage_seconds, key=lambda item: item[1])
    within = f", {spent:.0f} s of it in {_STAGES.get(stage, stage)}" if spent < seconds else ""
    return f"compiles in {seconds:.0f} s{within}: {instructions}{cause}"


def _longest(launch: LaunchCode) -> int | None:
    """The line with most instructions, if it has at least a tenth of all."""
    totals: dict[int, int] = {}
    for code in launch.lines:
        if code.line is not None:
            totals[code.line] = totals.get(code.line, 0) + _instructions(code)
    line = max(totals, key=lambda key: totals[key], default=None)
    return line if line is not None and totals[line] >= launch.facts.instructions / 10 else None


def _instructions(code: LineCode) -> int:
    return sum(item.count for item in code.counts)


def _divisions(subject: Subject, launch: LaunchCode, line: int | None) -> str:
    """``, 2,080 divisions here`` where the statement divides that often."""
    if line is None:
        return ""
    here = [code for code in launch.lines if code.line == line]
    for operation, noun in _DIVISIONS.items():
        count = sum(code.count(operation) for code in here)
        if count >= _MANY and _divides(subject, line, operation):
            return f", {count:,} {noun} here"
    return ""


def _divides(subject: Subject, line: int, operation: MachineOperation) -> bool:
    if operation is MachineOperation.INTEGER_DIVISION:
        return bool(divisors_at(subject, line))
    if calls_at(subject, line) & _SPECIAL_FUNCTIONS:
        return False
    if calls_at(subject, line) & _DIVISION_CALLS:
        return True
    return any(
        isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)
        for node in expressions_at(subject, line)
    )
