"""Which programs of a grid a trace runs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import TypeAlias

Program: TypeAlias = tuple[int, int, int]

_GOLDEN = (math.sqrt(5) - 1) / 2
_TRIES = 8


def programs(grid: Program, most: int) -> tuple[Program, ...]:
    """At most ``most`` different programs: the middle, first and last, the corners, then others.

    Any beginning of the sequence is spread over the grid, so that a trace may stop early.
    """
    total = math.prod(grid)
    wanted = min(most, total)
    chosen: dict[Program, None] = {}
    for program in itertools.chain(_marked(grid), _spread(grid, wanted * _TRIES)):
        if len(chosen) >= wanted:
            break
        chosen[program] = None
    for index in range(total if len(chosen) < wanted else 0):
        if len(chosen) >= wanted:
            break
        chosen[_program(index, grid)] = None
    return tuple(chosen)


def _marked(grid: Program) -> Iterator[Program]:
    x, y, z = grid
    yield x // 2, y // 2, z // 2
    yield 0, 0, 0
    yield x - 1, y - 1, z - 1
    yield from itertools.product((0, x - 1), (0, y - 1), (0, z - 1))


def _spread(grid: Program, tries: int) -> Iterator[Program]:
    """A sequence that divides by the golden ratio: even, and in step with no size of the grid."""
    total = math.prod(grid)
    for i in range(1, tries + 1):
        yield _program(min(int(i * _GOLDEN % 1 * total), total - 1), grid)


def _program(index: int, grid: Program) -> Program:
    rest, x = divmod(index, grid[0])
    z, y = divmod(rest, grid[1])
    return x, y, z
