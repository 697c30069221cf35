"""A loop that waits for its loads at every iteration instead of prefetching them.

Cause
    The compiler can copy the next iterations' operands while the present one computes. It does so
    for loads that feed a `tl.dot`, if the kernel has more than one stage; and for other loads only
    in a `tl.range` with `num_stages`. Loads under a branch, loads of less than 4 bytes a thread and
    loads whose address is itself loaded in the loop are left where they are.

Fix
    Launch with `num_stages=3` or so, widen narrow loads, move loads out of branches (a mask does
    the same), or write `for ... in tl.range(..., num_stages=3)` in a loop without dots.

Shown when
    A loop with a dot prefetches none of its loads, or a loop without one does and the loads of all
    resident programs together cannot keep the memory busy. Loops known to run less than four times
    are left out.

False positives
    Where many warps are resident they hide each other's waiting, and prefetching gains little. Its
    buffers take shared memory and may cost occupancy.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from search_engine.domain.code import LaunchCode, MatrixPath, PipelinedLoop
from search_engine.domain.finding import Finding, Severity
from search_engine.domain.kernel import Loop
from search_engine.findings._base import Subject, finding
from search_engine.findings._code import (
    GLOBAL_LOADS,
    assuming,
    budget,
    bytes_of,
    latency_bytes,
    one_per_line,
    plural,
    resident,
)
from search_engine.findings._loop_loads import (
    loads_blocks,
    loads_indirectly,
    loads_under_branch,
    narrowest_load,
)
from search_engine.findings._source import statement_at

_LEAST_ITERATIONS = 4
_LEAST_COST = 0.05
_DOT_GAIN = 0.4
"""Share of a product's time that prefetching saves at best: a 64x32 attention kernel and a 32x32
product with one stage gained 1.3 to 1.7 times with several on an H200."""
_STREAM_GAIN = 0.3
_COPY_BYTES = 4
"""Least width of an asynchronous copy."""


class NoPipelining:
    """Loops without prefetched loads."""

    code = "KL110"
    name = "no-pipelining"
    severity = Severity.HINT
    shown = True

    def findings(self, subject: Subject) -> Iterator[Finding]:
        """One for each loop, on its header."""
        yield from one_per_line(
            found
            for launch in subject.launches
            for loop in launch.loops
            for found in self._judge(subject, launch, loop)
        )

    def _judge(
        self, subject: Subject, launch: LaunchCode, loop: PipelinedLoop
    ) -> Iterator[Finding]:
        if loop.line is None or loop.prefetched or not loop.loads or _is_short(subject, loop):
            return
        reason = _reason(subject, launch, loop)
        cost = _cost(subject, launch, loop)
        if reason is None or cost < _LEAST_COST:
            return
        noun = "load" if loop.loads == 1 else f"{loop.loads} loads"
        verb = "is" if loop.loads == 1 else "are"
        yield finding(
            self,
            subject,
            subject.line_span(loop.line),
            f"the {noun} in this loop {verb} not prefetched: {reason}{assuming(launch)}",
            cost,
            facts={"loads": loop.loads, "stages": loop.stages},
        )


def _is_short(subject: Subject, loop: PipelinedLoop) -> bool:
    known = [
        item.mean_iterations
        for trace in subject.traces
        for item in trace.loops
        if item.line == loop.line
    ]
    return bool(known) and max(known) < _LEAST_ITERATIONS


def _reason(subject: Subject, launch: LaunchCode, loop: PipelinedLoop) -> str | None:
    statement = statement_at(subject, loop.line or 0)
    if not isinstance(statement, ast.For | ast.While):
        return None
    if isinstance(statement, ast.While):
        return "a `while` loop cannot be pipelined" if loop.has_dot else None
    if not loop.has_dot:
        asked = isinstance(statement.iter, ast.Call) and any(
            keyword.arg == "num_stages" for keyword in statement.iter.keywords
        )
        if (
            asked
            or 0 < narrowest_load(launch, loop) < _COPY_BYTES
            or not loads_blocks(subject, launch, loop)
        ):
            return None
        return "only `tl.range(..., num_stages=...)` prefetches without a dot"
    if launch.facts.stages < 2:
        return f"num_stages={launch.facts.stages}"
    if loads_under_branch(statement):
        return "they stand under an `if`"
    narrow = narrowest_load(launch, loop)
    if 0 < narrow < _COPY_BYTES:
        if launch.assumed:
            return None  # real strides may be divisible, and the loads wide
        return f"{plural(narrow, 'byte')} a thread, an asynchronous copy needs {_COPY_BYTES}"
    if _inner_loops(subject, loop):
        return None
    return "their addresses are loaded in it" if loads_indirectly(statement) else None


def _inner_loops(subject: Subject, loop: PipelinedLoop) -> list[Loop]:
    return [
        inner
        for kernel in (subject.unit.kernel, *subject.unit.helpers)
        for inner in kernel.loops
        if (loop.line or 0) < inner.span.line <= (loop.end_line or 0)
    ]


def _cost(subject: Subject, launch: LaunchCode, loop: PipelinedLoop) -> float:
    idle = max(0.0, 1 - _in_flight(subject, launch, loop) / latency_bytes(subject.target))
    if not loop.has_dot:
        return _STREAM_GAIN * idle * budget(subject, launch).memory_share
    on_unit = any(dot.path is MatrixPath.TENSOR for dot in launch.dots)
    return _DOT_GAIN * (0.5 + idle / 2) if on_unit else _STREAM_GAIN * idle


def _in_flight(subject: Subject, launch: LaunchCode, loop: PipelinedLoop) -> float:
    """Bytes of a processor's resident programs that one iteration asks for."""
    first, last = loop.line or 0, loop.end_line or loop.line or 0
    asked = sum(
        bytes_of(code, *GLOBAL_LOADS)
        for code in launch.lines
        if code.line is not None and first <= code.line <= last and code.loop_depth > 0
    )
    warps = resident(subject, launch).blocks * launch.facts.warps
    return asked * warps * subject.target.warp_size
