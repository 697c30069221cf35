"""A great many programs with a handful of elements each.

Cause
    A program takes about a microsecond however little it does: it starts, computes addresses, waits
    for its loads and ends. A processor holds a limited number of programs at a time, so a grid of
    very many tiny programs is limited by their number and not by the bytes they move.

Fix
    Let a program take more: a larger block where the block size is a constant (the search over
    configurations tries that), several rows or groups as a two-dimensional tile where a row is
    short (`several-rows-per-program`). For 128 elements one warp is enough: `num_warps=1` lets more
    programs run at once.

Shown when
    The programs have no long loop, there are at least four times as many as fit on the device at
    once, and starting them takes an estimated 1.4 times as long as moving their bytes.

False positives
    Programs that skip most of their work on a flag, and kernels whose arithmetic hides the starts.
"""

from __future__ import annotations

from collections.abc import Iterator

from search_engine.domain.access import LaunchTrace
from search_engine.domain.code import LaunchCode
from search_engine.domain.finding import Finding, Severity
from search_engine.findings._answer import answering
from search_engine.findings._base import Subject, finding
from search_engine.findings._estimate import (
    LAUNCH_S,
    PROGRAM_S,
    launch_times,
    resident_programs,
)
from search_engine.findings._launch import grid_span, launch_at, related_blocks, traced_launches
from search_engine.findings._trace import iterations, loads_by_loop

_LEAST_ROUNDS = 4
_MOST_ITERATIONS = 1.5
_LEAST_RATIO = 1.4
_MOST_ELEMENTS = 1024
"""A program of more elements keeps four warps busy with wide loads."""


class ProgramsTooSmall:
    """Launches that consist of starting programs."""

    code = "KL202"
    name = "programs-too-small"
    severity = Severity.HINT
    shown = True

    def findings(self, subject: Subject) -> Iterator[Finding]:
        """One for each launch site, at its grid."""
        for trace, code in traced_launches(subject):
            rounds = trace.programs / resident_programs(subject.target, code)
            loops = loads_by_loop(subject, trace).values()
            longest = max((iterations(loads, trace) for loads in loops), default=0.0)
            if code is not None and rounds >= _LEAST_ROUNDS and longest <= _MOST_ITERATIONS:
                yield from self._judge(subject, trace, code, rounds * PROGRAM_S)

    def _judge(
        self, subject: Subject, trace: LaunchTrace, code: LaunchCode, starting: float
    ) -> Iterator[Finding]:
        moving = launch_times(subject, trace, code).total
        elements = max((item.lanes for item in trace.accesses), default=0) / trace.sampled
        if starting < _LEAST_RATIO * moving or not 0 < elements <= _MOST_ELEMENTS:
            return
        launch = launch_at(subject, trace.line)
        yield finding(
            self,
            subject,
            grid_span(subject, launch),
            f"{trace.programs:,} programs of {elements:,.0f} elements",
            (starting - moving) / (starting + LAUNCH_S),
            facts={"programs": trace.programs, "elements": round(elements)},
            related=related_blocks(subject, launch),
            rule=answering(subject, "several-rows-per-program"),
        )
