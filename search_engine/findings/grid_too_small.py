"""Fewer programs than the device has processors.

Cause
    The grid has fewer programs than the target has streaming multiprocessors (or compute units),
    and each program has work for longer than a launch takes. The other processors stand idle, and
    the few that work cannot draw the whole memory bandwidth.

Fix
    Give the grid another axis. A loop without a carried value (groups of a row, blocks of columns)
    becomes a grid axis as it is. A long reduction is split: several programs take every n-th block
    and write partial results that a second, small kernel combines (`split-long-reduction`). Where a
    block size sets the grid, the search over configurations tries smaller ones. Too many splits
    cost traffic for the partial results: measure.

Shown when
    A traced launch fills at most three quarters of the processors, and one program's reads, writes,
    matrix products or chain of loads take an estimated 3 us or more. Launches that end about as
    soon as they start are left alone.

False positives
    Several such launches on different streams that fill the device together. Work whose order is
    essential, a recurrence for instance.
"""

from __future__ import annotations

from collections.abc import Iterator

from search_engine.domain.access import LaunchTrace
from search_engine.domain.code import LaunchCode
from search_engine.domain.finding import Finding, Related, Severity
from search_engine.findings._answer import answering
from search_engine.findings._base import Subject, finding
from search_engine.findings._estimate import LAUNCH_S, program_seconds
from search_engine.findings._launch import (
    grid_span,
    launch_at,
    processors,
    related_blocks,
    traced_launches,
)
from search_engine.findings._trace import iterations, loads_by_loop

_MOST_BUSY = 0.75
_LEAST_S = 3e-6
"""Below this a program is over before the next launch could have started."""


class GridTooSmall:
    """Idle processors during a launch that has work for them."""

    code = "KL201"
    name = "grid-too-small"
    severity = Severity.HINT
    shown = True

    def findings(self, subject: Subject) -> Iterator[Finding]:
        """One for each launch site whose grid leaves processors idle."""
        for trace, code in traced_launches(subject):
            if trace.programs <= _MOST_BUSY * subject.target.processors:
                yield from self._judge(subject, trace, code)

    def _judge(
        self, subject: Subject, trace: LaunchTrace, code: LaunchCode | None
    ) -> Iterator[Finding]:
        seconds = program_seconds(subject, trace, code)
        if seconds < _LEAST_S:
            return
        programs = trace.programs
        idle = 1 - programs / subject.target.processors
        launch = launch_at(subject, trace.line)
        yield finding(
            self,
            subject,
            grid_span(subject, launch),
            f"{programs:,} program{'s' if programs > 1 else ''} for {processors(subject.target)}",
            idle * seconds / (seconds + LAUNCH_S),
            facts={"programs": programs, "processors": subject.target.processors},
            related=(*_longest_loop(subject, trace), *related_blocks(subject, launch)),
            rule=answering(subject, "split-long-reduction"),
        )


def _longest_loop(subject: Subject, trace: LaunchTrace) -> tuple[Related, ...]:
    loops = loads_by_loop(subject, trace)
    line = max(loops, key=lambda item: iterations(loops[item], trace), default=None)
    if line is None or iterations(loops[line], trace) < 2:
        return ()
    span = subject.line_span(line)
    count = iterations(loops[line], trace)
    return (Related(line, span.start, span.end, f"{count:,.0f} iterations a program"),)
