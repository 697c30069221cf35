"""A large part of a block's lanes masked off in every program.

Cause
    A block is a power of two and the extent it covers is not, or is much smaller. Masked lanes move
    no bytes, but they take registers and their instructions are issued all the same.

Fix
    Smaller blocks over a flat grid, or a loop over blocks whose last one alone is ragged. Where the
    block is a constant of the launch, the search over configurations tries other sizes.

Shown when
    At least a quarter of the lanes of all loads and stores (weighted by their bytes) are off, not
    counting accesses that are off altogether, and the launch moves enough bytes to outlast its own
    start. A mask that only cuts the last block of many is normal and silent.

False positives
    Memory may be the limit all the same: a row of 5,120 in a block of 8,192 lanes can run at full
    bandwidth, so the share at stake is put at two fifths of the lanes lost.
"""

from __future__ import annotations

from collections.abc import Iterator

from search_engine.domain.access import LaunchTrace, LineAccess
from search_engine.domain.finding import Finding, Severity
from search_engine.findings._base import Subject, finding
from search_engine.findings._estimate import LAUNCH_S, launch_times
from search_engine.findings._launch import launch_at, related_blocks, traced_launches
from search_engine.findings._trace import certain, percent

_LEAST_SHARE = 0.25
_COST_OF_LANE = 0.4
_LEAST_S = 2e-6


class MaskedLanes:
    """Blocks that are much larger than what they cover."""

    code = "KL203"
    name = "masked-lanes"
    severity = Severity.HINT
    shown = True

    def findings(self, subject: Subject) -> Iterator[Finding]:
        """One for each launch, at the access that loses most."""
        told: set[int] = set()
        for trace, code in traced_launches(subject):
            worst = max(trace.accesses, key=_lost_bytes, default=None)
            moving = launch_times(subject, trace, code).total
            if worst is None or worst.line in told or moving < _LEAST_S or not certain(trace):
                continue
            off = _masked_share(trace)
            if min(off, _share(worst)) >= _LEAST_SHARE and _everywhere(trace, worst):
                told.add(worst.line)
                yield self._at(subject, trace, worst, off * moving / (moving + LAUNCH_S))

    def _at(
        self, subject: Subject, trace: LaunchTrace, access: LineAccess, weight: float
    ) -> Finding:
        share = _share(access)
        return finding(
            self,
            subject,
            subject.line_span(access.line),
            f"{percent(share)} of lanes are masked off",
            _COST_OF_LANE * weight,
            facts={
                "masked": round(share, 4),
                "lanes": access.lanes // access.executions,
                "sampled": trace.sampled,
            },
            related=related_blocks(subject, launch_at(subject, trace.line)),
        )


def _live_lanes(access: LineAccess) -> float:
    """Lanes of the executions that did anything."""
    return access.lanes * (1 - access.empty_executions / max(1, access.executions))


def _share(access: LineAccess) -> float:
    lanes = _live_lanes(access)
    return 1 - access.active_lanes / lanes if lanes else 0.0


def _lost_bytes(access: LineAccess) -> float:
    return (_live_lanes(access) - access.active_lanes) * access.element_bytes


def _masked_share(trace: LaunchTrace) -> float:
    """Of all lanes of the launch, weighted by the width of their elements."""
    every = sum(_live_lanes(item) * item.element_bytes for item in trace.accesses)
    return sum(_lost_bytes(item) for item in trace.accesses) / every if every else 0.0


def _everywhere(trace: LaunchTrace, access: LineAccess) -> bool:
    """False if one ragged block among the sampled programs can explain the share."""
    ragged = _live_lanes(access) / max(1, access.executions - access.empty_executions)
    return _live_lanes(access) - access.active_lanes > ragged or trace.programs == 1
