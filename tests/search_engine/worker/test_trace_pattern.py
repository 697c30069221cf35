"""The shape of an access: sectors, steps and bytes, counted by hand."""

from __future__ import annotations

import pytest

numpy = pytest.importorskip("numpy")

from search_engine.worker.trace_pattern import Pattern, lane_order  # noqa: E402


def _lanes(count: int, step: int):
    return numpy.arange(count, dtype=numpy.uint64) * numpy.uint64(step)


def test_packed_lanes_need_no_more_sectors_than_their_bytes():
    pattern = Pattern(_lanes(64, 4), None, 4)
    assert (pattern.count, pattern.steps) == (64, ((4, 63),))
    assert pattern.sectors(1 << 20) == pattern.least_sectors == 8
    assert pattern.sectors((1 << 20) + 16) == 10, "each group of 128 bytes touches one more"


@pytest.mark.parametrize(("step", "sectors"), [(0, 2), (8, 16), (32, 64), (4096, 64)])
def test_spread_lanes_touch_more_sectors(step, sectors):
    pattern = Pattern(_lanes(64, step), None, 4)
    assert (pattern.sectors(0), pattern.least_sectors) == (sectors, 8)
    assert pattern.steps == ((step, 63),)


def test_masked_lanes_touch_nothing():
    on = numpy.arange(64) < 5
    pattern = Pattern(_lanes(64, 128), on, 4)
    assert (pattern.count, pattern.sectors(0), pattern.least_sectors) == (5, 5, 1)
    assert (pattern.lowest, pattern.highest, pattern.steps) == (0, 512, ((128, 4),))


def test_lanes_before_the_first_one_are_seen():
    distances = _lanes(64, 4)[::-1] - numpy.uint64(252)
    pattern = Pattern(distances, None, 4)
    assert (pattern.lowest, pattern.highest, pattern.steps) == (-252, 0, ((-4, 63),))
    assert pattern.sectors(4096 + 252) == 8


@pytest.mark.parametrize(
    ("down", "across", "order"),
    [(4096, 4, (0, 1)), (4, 4096, (1, 0)), (256, 256, (0, 1)), (4, 0, (1, 0)), (0, 0, (0, 1))],
)
def test_lanes_run_along_the_smallest_step_that_moves(down, across, order):
    tile = _lanes(16, down)[:, None] + _lanes(8, across)[None, :]
    assert lane_order(tile.view("int64")) == order


def test_a_group_of_lanes_spans_short_rows():
    tile = _lanes(16, 1024)[:, None] + _lanes(8, 4)[None, :]
    pattern = Pattern(tile, None, 4)
    assert pattern.steps == ((4, 16 * 7),)
    assert (pattern.sectors(0), pattern.least_sectors) == (16, 16)


def test_bytes_are_intervals_without_overlap():
    pattern = Pattern(numpy.array([8, 0, 4, 4, 64, 60], dtype=numpy.uint64), None, 4)
    starts, ends = pattern.intervals()
    assert (starts.tolist(), ends.tolist()) == ([0, 60], [12, 68])


def test_a_shape_is_known_by_distances_and_mask():
    on = numpy.arange(8) < 5
    pattern = Pattern(_lanes(8, 4), on, 4)
    assert pattern.matches(_lanes(8, 4), on.copy())
    assert not pattern.matches(_lanes(8, 4), None)
    assert not pattern.matches(_lanes(8, 8), on)
    assert not pattern.matches(_lanes(16, 4), on)
