"""What compile facts and counted traffic say before anything is timed.

Conservative on purpose: a candidate is called certainly worse only for reasons that no measurement
contradicts, and everything else is only put in an order. Spills are a hint: there are kernels whose
every configuration spills and whose best one does too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from search_engine.domain.candidate import Candidate
from search_engine.domain.facts import CompileFacts, LaunchFacts, Traffic
from search_engine.domain.target import Target
from search_engine.predict.occupancy import Occupancy, occupancy
from search_engine.predict.waves import busy_processors, waves

_MASSIVE_SPILL_BYTES = 4096
"""A thread: a thousand stores and loads of a word. Winners that spill stayed an order below."""
_SPILL_RATIO = 8
_FEW_PROGRAMS_SHARE = 1 / 32
"""Of the processors: 4 programs on a card with 132."""
_FULL_OCCUPANCY = 0.25
"""Occupancy from which memory latency is usually hidden; more warps seldom help."""
_FULL_WIDTH_BYTES = 16
_TRAFFIC_STEP = 1.02
"""Traffic that differs by less than 2 % counts as equal, and the next figure decides."""


@dataclass(frozen=True, slots=True)
class Cost:
    """``relative`` orders candidates of one unit, smaller first; it is no time.

    ``impossible`` and ``certainly_worse`` are sentences for people; empty where they do not apply.
    """

    relative: float
    impossible: str
    certainly_worse: str

    @property
    def drop(self) -> bool:
        """True if measuring the candidate would be a waste."""
        return bool(self.impossible or self.certainly_worse)


@dataclass(frozen=True, slots=True)
class Untimed:
    """A candidate that is right but was never timed."""

    candidate: Candidate
    traffic: Traffic | None
    facts: CompileFacts | None


def predicted_cost(facts: CompileFacts, target: Target, baseline: CompileFacts | None) -> Cost:
    """Cost of one version beside the baseline's facts (None where the baseline has none)."""
    impossible = next((text for launch in facts.launches if (text := _limit(launch, target))), "")
    if impossible:
        return Cost(math.inf, impossible, "")
    relative = sum(_launch_cost(launch, target) for launch in facts.launches)
    return Cost(relative, "", _worse(facts, target, baseline))


def order_unmeasured(candidates: Iterable[Untimed], target: Target) -> tuple[Untimed, ...]:
    """The candidate to offer first in front: least counted traffic, then fewest atomics, then cost.

    The order says nothing about speed. Candidates without counted traffic come last.
    """
    return tuple(sorted(candidates, key=lambda item: _order_key(item, target)))


def _limit(launch: LaunchFacts, target: Target) -> str:
    if launch.shared_bytes > target.shared_bytes_per_block:
        return (
            f"{launch.kernel} needs {launch.shared_bytes} bytes of shared memory; "
            f"{target.name} has {target.shared_bytes_per_block} a block"
        )
    resident = _resident(launch, target)
    if resident.blocks == 0:
        return f"no block of {launch.kernel} fits a processor: {', '.join(resident.limiters)}"
    return ""


def _worse(facts: CompileFacts, target: Target, baseline: CompileFacts | None) -> str:
    if baseline is None:
        return ""
    spills, usual = _spill_bytes(facts), _spill_bytes(baseline)
    if spills > _MASSIVE_SPILL_BYTES and spills > _SPILL_RATIO * usual:
        return f"spills {spills} bytes a thread (the baseline {usual})"
    programs, before = _programs(facts), _programs(baseline)
    # The same work on a few processors instead of all of them.
    if programs < _FEW_PROGRAMS_SHARE * target.processors and before >= target.processors:
        return (
            f"only {programs} programs (the baseline {before}) for {target.processors} processors"
        )
    return ""


def _launch_cost(launch: LaunchFacts, target: Target) -> float:
    resident = _resident(launch, target)
    grid = math.prod(launch.grid)
    if grid < 1:
        return 0.0
    hidden = min(1.0, resident.fraction / _FULL_OCCUPANCY)
    filled = waves(target, grid, resident.blocks).efficiency
    # A grid below one wave wastes processors, not block slots: blocks spread over processors.
    spread = busy_processors(target, grid) if grid <= target.processors else max(filled, 0.5)
    narrow = _FULL_WIDTH_BYTES / max(1, min(launch.widest_load_bytes, _FULL_WIDTH_BYTES))
    width = 1 + 0.05 * math.log2(narrow) if launch.widest_load_bytes else 1.0
    return (1 + launch.spill_bytes / 512) * width / (math.sqrt(hidden) * spread)


def _resident(launch: LaunchFacts, target: Target) -> Occupancy:
    return occupancy(target, launch.registers, launch.shared_bytes, launch.warps)


def _spill_bytes(facts: CompileFacts) -> int:
    return max((launch.spill_bytes for launch in facts.launches), default=0)


def _programs(facts: CompileFacts) -> int:
    return max((math.prod(launch.grid) for launch in facts.launches), default=0)


def _order_key(item: Untimed, target: Target) -> tuple[bool, int, int, float, str]:
    cost = math.inf
    if item.facts is not None:
        cost = predicted_cost(item.facts, target, None).relative
    if item.traffic is None:
        return True, 0, 0, cost, item.candidate.id
    traffic = item.traffic
    asked = traffic.loaded_bytes + traffic.stored_bytes
    moved = max(1, asked + 32 * traffic.sectors)
    step = round(math.log(moved) / math.log(_TRAFFIC_STEP))
    return False, step, traffic.atomic_operations, cost, item.candidate.id
