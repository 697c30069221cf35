"""A program that waits for memory once per iteration of a long loop.

Cause
    Each iteration of the loop loads a small block and needs it before the next one begins. A load
    takes about 0.6 us, whatever its size. Other programs on the same processor run in the meantime,
    but only so many fit, and here all of them wait most of the time.

Fix
    Larger blocks mean fewer iterations: the search over configurations tries them, and
    `one-block-per-row` holds the whole row. A running sum in a block instead of a scalar lets loads
    overlap (`vector-accumulator`). Where the grid is small, several programs can share the loop
    (`split-long-reduction`), and iterations that carry no value can become a grid axis.

Shown when
    A loop with loads runs at least 16 times a program, the compiler does not prefetch its loads,
    and the waiting of all programs that fit at once takes an estimated 5 us or more and at least
    twice as long as moving the bytes would. Said once a launch, at the loop that waits longest.

False positives
    Loops whose iterations depend on one another by nature. Loads that hit in a cache take less than
    a memory access, so the share at stake may be smaller.
"""

from __future__ import annotations

from collections.abc import Iterator

from search_engine.domain.access import LaunchTrace
from search_engine.domain.code import LaunchCode
from search_engine.domain.finding import Finding, Severity
from search_engine.findings._answer import answering
from search_engine.findings._base import Subject, finding
from search_engine.findings._estimate import LAUNCH_S, launch_times, waiting_seconds
from search_engine.findings._launch import (
    launch_at,
    processors,
    related_blocks,
    related_grid,
    traced_launches,
)
from search_engine.findings._trace import certain, iterations, loads_by_loop, pipelined

_LEAST_ITERATIONS = 16
_LEAST_S = 5e-6
_LEAST_RATIO = 2.0


class SerialWork:
    """A loop whose load latency nothing hides."""

    code = "KL207"
    name = "serial-work"
    severity = Severity.HINT
    shown = True

    def findings(self, subject: Subject) -> Iterator[Finding]:
        """One for each launch, at the header of the loop that waits longest."""
        told: set[int] = set()
        for trace, code in traced_launches(subject):
            line = _longest_loop(subject, trace, code)
            if line is not None and line not in told and certain(trace):
                for found in self._judge(subject, trace, code, line):
                    told.add(line)
                    yield found

    def _judge(
        self, subject: Subject, trace: LaunchTrace, code: LaunchCode | None, line: int
    ) -> Iterator[Finding]:
        loads = loads_by_loop(subject, trace)[line]
        steps = iterations(loads, trace)
        waiting = waiting_seconds(subject, trace, code)
        moving = launch_times(subject, trace, code).total
        if steps < _LEAST_ITERATIONS or waiting < max(_LEAST_S, _LEAST_RATIO * moving):
            return
        walked = max(item.active_lanes for item in loads) / trace.sampled
        launch = launch_at(subject, trace.line)
        programs = f"{trace.programs:,} programs for {processors(subject.target)}"
        yield finding(
            self,
            subject,
            subject.line_span(line),
            f"one program walks {walked:,.0f} elements in {steps:,.0f} steps",
            (waiting - moving) / (waiting + LAUNCH_S),
            facts={
                "elements": round(walked),
                "iterations": round(steps),
                "programs": trace.programs,
            },
            related=(*related_grid(subject, launch, programs), *related_blocks(subject, launch)),
            rule=answering(
                subject, "split-long-reduction", "one-block-per-row", "vector-accumulator"
            ),
        )


def _longest_loop(subject: Subject, trace: LaunchTrace, code: LaunchCode | None) -> int | None:
    """Header line of the loop that runs most often without prefetching; the first of equals."""
    counts = {
        line: iterations(loads, trace)
        for line, loads in sorted(loads_by_loop(subject, trace).items())
        if (loop := pipelined(code, line)) is None or not loop.prefetched
    }
    return max(counts, key=lambda line: counts[line], default=None)
