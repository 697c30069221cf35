"""Too few warps on a processor to hide the latency of memory.

Cause
    Registers or shared memory of one block leave room for few blocks on a processor. While their
    loads are under way nothing else runs, and the bandwidth is not used.

Fix
    The message names what binds. Registers: a smaller block or more warps a block, so that each
    thread holds less. Shared memory: fewer stages or smaller tiles. Or let each thread have more
    independent loads in flight instead.

Shown when
    A kernel that memory limits keeps at most a quarter of a processor's warps resident, its loads
    in flight cannot cover the latency, and the grid has more programs than fit.

False positives
    Low occupancy alone is no fault: products on the matrix unit reach their best speed with one
    block a processor, and threads with many loads in flight need few warps. Both are left out.
    The loads of one loop are taken to be under way together, so some findings are missed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from search_engine.domain.code import LaunchCode, MatrixPath
from search_engine.domain.finding import Finding, Severity
from search_engine.findings._base import Subject, finding
from search_engine.findings._code import (
    GLOBAL_LOADS,
    assuming,
    budget,
    bytes_of,
    kibibytes,
    latency_bytes,
    one_per_line,
    resident,
)
from search_engine.findings._launch import launch_at, related_blocks
from search_engine.findings._trace import innermost_loop
from search_engine.predict.occupancy import Occupancy, occupancy

_LITTLE = 0.25
"""Share of the warps from which latency is usually hidden; more seldom helps."""
_LEAST_MEMORY_SHARE = 0.5
_LEAST_COST = 0.05


class LowOccupancy:
    """Few resident warps where that matters."""

    code = "KL104"
    name = "low-occupancy"
    severity = Severity.HINT
    shown = True

    def findings(self, subject: Subject) -> Iterator[Finding]:
        """One for each launch, on the kernel's name."""
        yield from one_per_line(
            found for launch in subject.launches for found in self._judge(subject, launch)
        )

    def _judge(self, subject: Subject, launch: LaunchCode) -> Iterator[Finding]:
        now = resident(subject, launch)
        if now.blocks == 0 or now.fraction > _LITTLE or not _can_matter(subject, launch, now):
            return
        memory_share = budget(subject, launch).memory_share
        cost = memory_share * (
            1 - _bytes_in_flight(subject, launch, now) / latency_bytes(subject.target)
        )
        if memory_share < _LEAST_MEMORY_SHARE or cost < _LEAST_COST:
            return
        yield finding(
            self,
            subject,
            subject.unit.kernel.name_span,
            f"occupancy {100 * now.fraction:.0f} %, {_limit(subject, launch, now)}"
            f"{assuming(launch)}",
            cost,
            facts={
                "occupancy": now.fraction,
                "blocks": now.blocks,
                "registers": launch.facts.registers,
                "shared_bytes": launch.facts.shared_bytes,
                "limiter": now.limiters[0],
            },
            related=related_blocks(subject, launch_at(subject, launch.line)),
        )


def _can_matter(subject: Subject, launch: LaunchCode, now: Occupancy) -> bool:
    """Registers or shared memory bind, more blocks are waiting, and no matrix unit is kept busy."""
    if not set(now.limiters) & {"registers", "shared memory"}:
        return False
    if any(dot.path is MatrixPath.TENSOR for dot in launch.dots):
        return False
    programs = math.prod(launch.facts.grid)
    return launch.assumed or programs > subject.target.processors * now.blocks


def _bytes_in_flight(subject: Subject, launch: LaunchCode, now: Occupancy) -> float:
    """Of one processor: all loads of the busiest loop, taken to be under way together."""
    together: dict[tuple[int, int | None], int] = {}
    for code in launch.lines:
        loop = innermost_loop(subject, code.line) if code.line is not None else None
        place = (code.loop_depth, loop.span.line if loop is not None else None)
        together[place] = together.get(place, 0) + bytes_of(code, *GLOBAL_LOADS)
    ahead = max((loop.stages - 1 for loop in launch.loops if loop.prefetched), default=1)
    warps = now.fraction * subject.target.warps_per_processor
    return max(together.values(), default=0) * max(1, ahead) * warps * subject.target.warp_size


def _limit(subject: Subject, launch: LaunchCode, now: Occupancy) -> str:
    facts = launch.facts
    if "shared memory" in now.limiters:
        per_block = kibibytes(facts.shared_bytes)
        return f"limited by shared memory ({per_block} a block){_less_shared(subject, launch, now)}"
    registers = f"{facts.registers} a thread, {facts.warps} warps a block"
    return f"limited by registers ({registers}){_fewer_registers(subject, launch, now)}"


def _fewer_registers(subject: Subject, launch: LaunchCode, now: Occupancy) -> str:
    facts = launch.facts
    for registers in range(facts.registers, 15, -1):
        fit = occupancy(subject.target, registers, facts.shared_bytes, facts.warps)
        if fit.blocks > now.blocks:
            return f"; {registers} would fit {fit.blocks} blocks"
    return ""


def _less_shared(subject: Subject, launch: LaunchCode, now: Occupancy) -> str:
    facts = launch.facts
    for shared in range(facts.shared_bytes // 1024 * 1024, 0, -1024):
        fit = occupancy(subject.target, facts.registers, shared, facts.warps)
        if fit.blocks > now.blocks:
            return f"; {kibibytes(shared)} would fit {fit.blocks}"
    return ""
