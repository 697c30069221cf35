"""A program that waits for memory once per iteration of a long loop, with few others to fill in.

Cause
    Each iteration of the loop loads a small block and needs it before the next one begins. A load
    takes about 0.6 us, whatever its size. With enough programs on a processor others run in the
    meantime; here the grid is too small for that, so the waiting adds up.

Fix
    Larger blocks mean fewer iterations: the search over configurations tries them, and
    `one-block-per-row` holds the whole row. Several programs can share the loop
    (`split-long-reduction`); iterations that carry no value can become a grid axis. A running sum
    in a block instead of a scalar lets loads overlap (`vector-accumulator`).

Shown when
    A loop with loads runs at least 16 times a program, the compiler does not prefetch its loads,
    the grid fills at most half of the places for programs, and the waiting takes an estimated 5 us
    or more and at least twice as long as moving the bytes would.

False positives
    Loops whose iterations depend on one another by nature. Loads that hit in a cache take less than
    a memory access, so the share at stake may be smaller.
"""

from __future__ import annotations

from collections.abc import Iterator

from search_engine.domain.access import LaunchTrace, LineAccess
from search_engine.domain.code import LaunchCode
from search_engine.domain.finding import Finding, Severity
from search_engine.findings._answer import answering
from search_engine.findings._base import Subject, finding
from search_engine.findings._estimate import (
    LAUNCH_S,
    launch_times,
    loop_chain_seconds,
    resident_programs,
)
from search_engine.findings._launch import (
    launch_at,
    processors,
    related_blocks,
    related_grid,
    traced_launches,
)
from search_engine.findings._trace import iterations, loads_by_loop, pipelined

_LEAST_ITERATIONS = 16
_LEAST_S = 5e-6
_MOST_RESIDENT = 0.5


class SerialWork:
    """A loop whose load latency nothing hides."""

    code = "KL207"
    name = "serial-work"
    severity = Severity.HINT
    shown = True

    def findings(self, subject: Subject) -> Iterator[Finding]:
        """One for each loop, at its header."""
        told: set[int] = set()
        for trace, code in traced_launches(subject):
            places = resident_programs(subject.target, code)
            if trace.programs > _MOST_RESIDENT * places:
                continue
            for line, loads in loads_by_loop(subject, trace).items():
                if line not in told:
                    found = self._judge(subject, trace, code, line, loads)
                    told |= {line for _ in found}
                    yield from found

    def _judge(
        self,
        subject: Subject,
        trace: LaunchTrace,
        code: LaunchCode | None,
        line: int,
        loads: list[LineAccess],
    ) -> tuple[Finding, ...]:
        steps = iterations(loads, trace)
        loop = pipelined(code, line)
        if steps < _LEAST_ITERATIONS or (loop is not None and loop.prefetched):
            return ()
        chain = loop_chain_seconds(steps, code, line)
        moving = launch_times(subject, trace, code).total
        if chain < _LEAST_S or chain < 2 * moving:
            return ()
        walked = max(item.active_lanes for item in loads) / trace.sampled
        launch = launch_at(subject, trace.line)
        programs = f"{trace.programs:,} programs for {processors(subject.target)}"
        return (
            finding(
                self,
                subject,
                subject.line_span(line),
                f"one program walks {walked:,.0f} elements in {steps:,.0f} steps",
                (chain - moving) / (chain + LAUNCH_S),
                facts={
                    "elements": round(walked),
                    "iterations": round(steps),
                    "programs": trace.programs,
                },
                related=(
                    *related_grid(subject, launch, programs),
                    *related_blocks(subject, launch),
                ),
                rule=answering(
                    subject, "split-long-reduction", "one-block-per-row", "vector-accumulator"
                ),
            ),
        )
