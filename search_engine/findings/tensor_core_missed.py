"""A product that does not run on the matrix unit, or runs there at a lower rate than it could.

Cause
    The matrix unit takes operands of 8 and 16 bits, and fp32 only when rounded to tf32. A `tl.dot`
    of fp32 operands in full precision runs as ordinary multiply-adds; so does one whose tile is
    smaller than the unit's. Operands that are cast to fp32 before the dot lose the fast path
    although they came from memory in few bits. A product written as a sum over a broadcast
    multiplication never reaches the unit.

Fix
    Multiply in the type the operands are stored in, accumulate in fp32 and apply scales afterwards.
    For real fp32 operands `input_precision="tf32"` uses the unit at lower precision, `"tf32x3"` at
    nearly full precision: a decision for the author, never made silently.

Shown when
    The compiler lowered the dot to multiply-adds, or the dot's fp32 operands were cast from a
    smaller type in the kernel, or a three-dimensional broadcast product is summed over its inner
    axis; and this takes an estimated 5 % of the kernel's time or more.

False positives
    Full precision may be what the author wants: the message then says that it was asked for. A
    value cast up for an operation between load and dot that needs fp32 must be cast back first.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from search_engine.domain.code import DotCode, LaunchCode, MachineOperation, MatrixPath
from search_engine.domain.finding import Finding, Severity
from search_engine.findings._base import Subject, finding
from search_engine.findings._code import (
    assuming,
    budget,
    dot_operations,
    dot_seconds,
    issue_seconds,
    loop_weight,
    one_per_line,
    rate_factor,
    slots_of,
    weight_of,
)
from search_engine.findings._dots import CastUp, broadcast_products, cast_up
from search_engine.findings._vectors import element_bytes

_LEAST_COST = 0.05
_LEAST_ROWS = {"nvidia": 16, "amd": 4}
"""Of a tile on the matrix unit; fewer rows go to multiply-adds."""
_UNIT_TYPES = ("f16", "bf16", "f8", "i8", "fp16", "fp8", "tf32", "f32", "fp32")
_FULL = ("f32", "fp32")
_CASTING = (
    MachineOperation.CONVERSION,
    MachineOperation.SHARED_LOAD,
    MachineOperation.SHARED_STORE,
)


class TensorCoreMissed:
    """Dots that leave the matrix unit idle or slow."""

    code = "KL109"
    name = "tensor-core-missed"
    severity = Severity.HINT
    shown = True

    def findings(self, subject: Subject) -> Iterator[Finding]:
        """One for each dot or broadcast product."""
        yield from one_per_line(
            found
            for launch in subject.launches
            for found in (*self._dots(subject, launch), *self._sums(subject, launch))
        )

    def _dots(self, subject: Subject, launch: LaunchCode) -> Iterator[Finding]:
        for dot in launch.dots:
            if dot.line is None or not subject.in_unit(dot.line):
                continue
            cast = cast_up(subject, launch, dot.line)
            reason = _reason(subject, dot, cast)
            cost = _cost(subject, launch, dot, cast)
            if reason is None or cost < _LEAST_COST:
                continue
            yield finding(
                self,
                subject,
                subject.line_span(dot.line),
                f"tl.dot runs {reason}{assuming(launch)}",
                cost,
                facts={
                    "operands": " ".join(dot.operand_types),
                    "path": dot.path.value,
                    "tile": "x".join(str(extent) for extent in dot.tile),
                },
            )

    def _sums(self, subject: Subject, launch: LaunchCode) -> Iterator[Finding]:
        """Products of two blocks that the text spells as a sum over their broadcast product."""
        if not any(_is_small(argument.dtype) for argument in launch.arguments):
            return
        for call in broadcast_products(subject):
            cost = _sum_cost(subject, launch, call)
            if cost >= _LEAST_COST:
                yield finding(
                    self,
                    subject,
                    subject.line_span(call.lineno - 1),
                    "product of two blocks summed on the FMA pipe: tl.dot would use the matrix "
                    f"unit{assuming(launch)}",
                    cost,
                )


def _reason(subject: Subject, dot: DotCode, cast: CastUp | None) -> str | None:
    full = dot.operand_types[0] in _FULL and dot.operand_types[0] == dot.operand_types[1]
    if dot.path is MatrixPath.TENSOR:
        if full and cast is not None:
            rate = "fp32" if subject.target.vendor == "amd" else dot.precision or "tf32"
            return f"at the {rate} rate: operands up-cast from {cast.stored} to fp32"
        return None
    if not dot.operand_types[0].startswith(_UNIT_TYPES):
        return None
    if full and cast is not None:
        return f"on FMA: operands up-cast from {cast.stored} to fp32"
    if full and dot.precision == "ieee":
        return "on FMA: fp32 operands in full precision, as asked for (tf32 would use the unit)"
    rows = _LEAST_ROWS[subject.target.vendor]
    if dot.tile and min(dot.tile[:2]) < rows:
        return f"on FMA: {'x'.join(map(str, dot.tile))} is below the matrix unit's {rows} rows"
    return None


def _cost(subject: Subject, launch: LaunchCode, dot: DotCode, cast: CastUp | None) -> float:
    """Share that goes if the dot ran on the unit, in the type that its operands are stored in."""
    target, whole = subject.target, budget(subject, launch)
    total = loop_weight(subject, dot.line, dot.loop_depth) * dot_operations(dot)
    stored = cast.stored if cast is not None else dot.operand_types[0]
    then = total / (target.matrix_rate.value * rate_factor(target, stored))
    now = dot_seconds(subject, dot)
    issue = _cast_seconds(subject, launch, dot, cast)
    if dot.path is MatrixPath.FMA:
        issue += issue_seconds(target, total / 2)
    on_unit = replace(whole, issue=max(0.0, whole.issue - issue), matrix=whole.matrix - now + then)
    return 1 - on_unit.total / whole.total if whole.total else 0.0


def _cast_seconds(subject: Subject, launch: LaunchCode, dot: DotCode, cast: CastUp | None) -> float:
    """Of casting and scaling the operands and writing them back to where the unit reads them."""
    slots = 0.0
    for code in launch.lines if cast is not None else ():
        if cast is not None and code.line in cast.lines and code.loop_depth >= dot.loop_depth:
            items = [item for item in code.counts if item.operation in _CASTING]
            slots += weight_of(subject, code) * sum(
                slots_of(item, subject.target) for item in items
            )
    return issue_seconds(subject.target, slots * launch.facts.warps * subject.target.warp_size)


def _sum_cost(subject: Subject, launch: LaunchCode, call: ast.Call) -> float:
    """Share of the launch that the multiply-adds on the product's lines take."""
    first, last = call.lineno - 1, (call.end_lineno or call.lineno) - 1
    slots = sum(
        weight_of(subject, code) * code.count(MachineOperation.FP32)
        for code in launch.lines
        if code.line is not None and first <= code.line <= last
    )
    lanes = launch.facts.warps * subject.target.warp_size
    return budget(subject, launch).saving(issue=issue_seconds(subject.target, slots * lanes))


def _is_small(dtype: str) -> bool:
    return dtype.startswith("*") and element_bytes(dtype) in (1, 2)
