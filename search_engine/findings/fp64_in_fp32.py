"""Double-precision instructions in a kernel that has no double-precision data.

Cause
    A value became a double on the way: a cast to `tl.float64`, a double constant, a library
    function that computes in double. On most cards a double instruction takes as long as 32 or 64
    single ones.

Fix
    Keep the computation in fp32: cast to `tl.float32`, use the fp32 form of the function. Where a
    sum needs more accuracy, add pairwise or with a compensation term.

Shown when
    The machine code holds double instructions, none of the kernel's arguments is fp64, and they
    take an estimated 2 % of the kernel's time or more at the target's fp64 rate.

False positives
    An accumulator in fp64 may be meant: the finding then tells what it costs on this target. The
    slow path of sine, cosine and tangent multiplies in double for huge arguments only; lines that
    call these or other library functions are left out.
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


class Fp64InFp32:
    """Doubles that nobody passed."""

    code = "KL111"
    name = "fp64-in-fp32"
    severity = Severity.HINT
    shown = True

    def findings(self, subject: Subject) -> Iterator[Finding]:
        """One for each line with double instructions."""
        yield from one_per_line(
            found
            for launch in subject.launches
            if not any("fp64" in argument.dtype for argument in launch.arguments)
            for code, _ in hottest(subject, launch, MachineOperation.FP64)
            for found in self._judge(subject, launch, code)
        )

    def _judge(self, subject: Subject, launch: LaunchCode, code: LineCode) -> Iterator[Finding]:
        if code.line is None or has_slow_path(subject, code.line):
            return
        cost, count = _cost(subject, launch, code), code.count(MachineOperation.FP64)
        if cost < _LEAST_COST:
            return
        ratio = round(1 / subject.target.fp64_ratio)
        rate = f"1/{ratio} of the fp32 rate" if ratio > 1 else "the fp32 rate"
        yield finding(
            self,
            subject,
            subject.line_span(code.line),
            f"{plural(count, 'double instruction')} in a float kernel, at {rate} on "
            f"{subject.target.name}{assuming(launch)}",
            cost,
            facts={"instructions": count, "fp64_ratio": subject.target.fp64_ratio},
        )


def _cost(subject: Subject, launch: LaunchCode, code: LineCode) -> float:
    """Share that goes if the same instructions ran at the fp32 rate."""
    lanes = launch.facts.warps * subject.target.warp_size
    slower = 1 / subject.target.fp64_ratio - 1
    slots = weight_of(subject, code) * code.count(MachineOperation.FP64) * slower
    return budget(subject, launch).saving(issue=issue_seconds(subject.target, slots * lanes))
