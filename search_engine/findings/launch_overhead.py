"""A kernel launched again and again in a Python loop, each time with little to do.

Cause
    A launch from Python takes the host about ten microseconds, and the device a few to start and
    end. If the kernel itself takes no longer than that, the loop is limited by launching.

Fix
    Make the loop an axis of the grid: the loop variable becomes `tl.program_id(1)` and the tensors
    are passed whole with their strides. Where each round needs the last one's result, move the
    loop into the kernel or replay a CUDA graph. No rewrite rule does this.

Shown when
    The traced entry launches from one site at least eight times in a call and launching takes an
    estimated 30 % of the time or more. Without a trace: the launch stands in a `for` over a plain
    range that is not a small literal, and the loop variable picks what the launch gets.

False positives
    Loops in tests and benchmarks repeat on purpose; functions named so are left out without a
    trace. Loops over chunks that bound memory launch large kernels: they have a step, and are left
    out without a trace.
"""

from __future__ import annotations

from collections.abc import Iterator

from search_engine.domain.access import LaunchTrace
from search_engine.domain.code import LaunchCode
from search_engine.domain.finding import Finding, Severity
from search_engine.domain.kernel import Launch, Span
from search_engine.findings._base import Subject, finding
from search_engine.findings._estimate import launch_times, program_seconds
from search_engine.findings._host_loop import host_loop
from search_engine.findings._launch import grid_span, launch_at, related_grid, traced_launches

_HOST_S = 10e-6
"""Of Triton's launcher for a kernel with about ten arguments."""
_LEAST_LAUNCHES = 8
_LEAST_SHARE = 0.3
_COST_UNTRACED = 0.3


class LaunchOverhead:
    """Loops that wait for the launcher."""

    code = "KL210"
    name = "launch-overhead"
    severity = Severity.HINT
    shown = True

    def findings(self, subject: Subject) -> Iterator[Finding]:
        """One for each launch site, at the header of the host's loop."""
        traced: set[Launch | None] = set()
        told: set[int] = set()
        for trace, code in traced_launches(subject):
            launch = launch_at(subject, trace.line)
            traced.add(launch)
            for found in self._traced(subject, trace, code, launch):
                if found.line not in told:
                    told.add(found.line)
                    yield found
        if None in traced:
            return
        for launch in subject.module.launches:
            own = launch.kernel == subject.unit.kernel.name and launch not in traced
            loop = host_loop(subject, launch) if own else None
            if loop is not None and loop.independent and loop.header.line not in told:
                told.add(loop.header.line)
                message = "a kernel is launched in each iteration of this Python loop"
                yield self._at(subject, loop.header, message, _COST_UNTRACED, launch)

    def _traced(
        self,
        subject: Subject,
        trace: LaunchTrace,
        code: LaunchCode | None,
        launch: Launch | None,
    ) -> Iterator[Finding]:
        alone = program_seconds(subject, trace, code)
        seconds = max(launch_times(subject, trace, code).total, alone)
        share = max(0.0, _HOST_S - seconds) / _HOST_S if seconds < _HOST_S else 0.0
        if trace.in_host_loop < _LEAST_LAUNCHES or share < _LEAST_SHARE:
            return
        loop = host_loop(subject, launch) if launch is not None else None
        place = loop.header if loop is not None else grid_span(subject, launch)
        message = f"launched {trace.in_host_loop:,} times in one call, each with little to do"
        yield self._at(subject, place, message, share, launch, launches=trace.in_host_loop)

    def _at(
        self,
        subject: Subject,
        place: Span,
        message: str,
        cost: float,
        launch: Launch | None,
        launches: int | None = None,
    ) -> Finding:
        return finding(
            self,
            subject,
            place,
            message,
            cost,
            facts={} if launches is None else {"launches": launches},
            related=related_grid(subject, launch, "the launch"),
        )
