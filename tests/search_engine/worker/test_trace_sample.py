"""Which programs a trace runs: the marked ones first, then an even spread, never one twice."""

from __future__ import annotations

import math

import pytest

from search_engine.worker.trace_sample import programs


@pytest.mark.parametrize("grid", [(1, 1, 1), (7, 1, 1), (3, 2, 2), (2, 5, 1)])
def test_a_small_grid_runs_whole(grid):
    found = programs(grid, 24)
    assert len(found) == math.prod(grid) == len(set(found))
    assert all(0 <= at < size for program in found for at, size in zip(program, grid, strict=True))


@pytest.mark.parametrize("grid", [(1 << 20, 1, 1), (128, 128, 1), (32, 4096, 8), (1, 1, 65536)])
def test_a_large_grid_runs_its_middle_ends_and_corners_first(grid):
    found = programs(grid, 24)
    assert len(found) == 24 == len(set(found))
    last = tuple(size - 1 for size in grid)
    assert found[0] == tuple(size // 2 for size in grid)
    assert set(found[1:3]) == {(0, 0, 0), last}
    corners = {p for p in found if all(at in (0, end) for at, end in zip(p, last, strict=True))}
    assert len(corners) == 2 ** sum(size > 1 for size in grid)


def test_the_rest_is_spread_evenly_and_along_every_axis():
    found = programs((32, 4096, 8), 200)
    for axis, size in enumerate((32, 4096, 8)):
        quarters = [program[axis] * 4 // size for program in found]
        assert all(30 < quarters.count(quarter) < 70 for quarter in range(4))


def test_an_empty_grid_has_no_programs():
    assert programs((0, 1, 1), 24) == ()
