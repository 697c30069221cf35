"""Iterations of a loop that do nothing: every lane of theirs is masked.

Cause
    The loop runs over a range that is larger than what the program needs: a causal kernel visits
    the tiles above the diagonal, a windowed one those outside the window, a decode kernel runs to
    the longest length although this sequence is shorter. The masks make it correct, and the
    iterations still load, multiply or wait.

Fix
    Take the bounds of the loop from the mask: end at the diagonal
    (`range(0, (row_block + 1) * BLOCK, BLOCK)`), start at the first tile of the window, end at the
    length of the sequence. The result is the same to the bit. No rewrite rule does this.

Shown when
    At least 15 % of the iterations of the sampled programs have all their lanes off, either in each
    load and store of the loop, or in the `tl.where` that replaces scores by minus infinity (worked
    out from the sizes of the launch for tiles all over the grid).

False positives
    Masks that come from data are those of the declared workload.
"""

from __future__ import annotations

from collections.abc import Iterator

from search_engine.domain.access import LaunchTrace, LineAccess
from search_engine.domain.code import LaunchCode
from search_engine.domain.finding import Finding, Severity
from search_engine.findings._base import Subject, finding
from search_engine.findings._estimate import LAUNCH_S, launch_times, program_seconds
from search_engine.findings._launch import launch_at, related_grid, traced_launches
from search_engine.findings._masked_tiles import masked_tiles
from search_engine.findings._trace import certain, innermost_loop, percent

_LEAST_SHARE = 0.15
_COST_OF_EMPTY = 0.5
"""Of an iteration without memory traffic beside one with it, if it multiplies nothing."""


class DeadIterations:
    """Loop bounds that are wider than the mask."""

    code = "KL206"
    name = "dead-iterations"
    severity = Severity.HINT
    shown = True

    def findings(self, subject: Subject) -> Iterator[Finding]:
        """One for each loop, at its header."""
        told: set[int] = set()
        for trace, code in traced_launches(subject):
            for line, share in _dead_loops(subject, trace, code).items():
                if line not in told and share >= _LEAST_SHARE:
                    told.add(line)
                    yield self._at(subject, trace, code, line, share)

    def _at(
        self,
        subject: Subject,
        trace: LaunchTrace,
        code: LaunchCode | None,
        line: int,
        share: float,
    ) -> Finding:
        alone = program_seconds(subject, trace, code)
        seconds = max(launch_times(subject, trace, code).total, alone)
        product = code is not None and bool(code.dots)
        launch = launch_at(subject, trace.line)
        return finding(
            self,
            subject,
            subject.line_span(line),
            f"{percent(share)} of iterations are fully masked",
            share * (1.0 if product else _COST_OF_EMPTY) * seconds / (seconds + LAUNCH_S),
            facts={"dead": round(share, 4), "programs": trace.programs},
            related=related_grid(subject, launch, f"{trace.programs:,} programs"),
        )


def _dead_loops(subject: Subject, trace: LaunchTrace, code: LaunchCode | None) -> dict[int, float]:
    """Share of iterations without an active lane, by the loop's header line."""
    found = {
        line: min(item.empty_executions / item.executions for item in accesses)
        for line, accesses in _blocks_by_loop(subject, trace).items()
        if certain(trace)
    }
    if code is not None:
        for tiles in masked_tiles(subject, code):
            found[tiles.line] = max(found.get(tiles.line, 0.0), tiles.share)
    return found


def _blocks_by_loop(subject: Subject, trace: LaunchTrace) -> dict[int, list[LineAccess]]:
    """Accesses of more than one lane in loops that repeat, by their innermost loop's header."""
    found: dict[int, list[LineAccess]] = {}
    for access in trace.accesses:
        loop = innermost_loop(subject, access.line)
        wide, repeats = access.lanes > access.executions, access.executions > trace.sampled
        if loop is not None and wide and repeats:
            found.setdefault(loop.span.line, []).append(access)
    return found
