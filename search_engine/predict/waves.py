"""How a grid falls into waves of resident blocks, and what the last wave wastes."""

from __future__ import annotations

from dataclasses import dataclass

from search_engine.domain.target import Target


@dataclass(frozen=True, slots=True)
class Waves:
    """``count`` rounds of up to ``capacity`` programs; ``tail`` programs in the last one.

    ``efficiency`` is the share of block slots that hold a program over all rounds, if every
    program took the same time: 1 without waste.
    """

    count: int
    capacity: int
    tail: int
    efficiency: float


def waves(target: Target, programs: int, blocks_per_processor: int) -> Waves:
    """Waves of a grid of ``programs``. Raises ValueError unless both numbers are positive."""
    if programs < 1 or blocks_per_processor < 1:
        raise ValueError(f"no waves: {programs} programs, {blocks_per_processor} blocks")
    capacity = target.processors * blocks_per_processor
    count = -(-programs // capacity)
    tail = programs - (count - 1) * capacity
    return Waves(count, capacity, tail, programs / (count * capacity))


def busy_processors(target: Target, programs: int) -> float:
    """Share of processors with at least one program in the first wave."""
    return min(1.0, programs / target.processors)
