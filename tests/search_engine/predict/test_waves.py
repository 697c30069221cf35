"""Waves and tails of a grid."""

import pytest

from search_engine.predict.waves import busy_processors, waves
from search_engine.targets.registry import target_named

H200 = target_named("sm_90")


def test_a_grid_that_just_fits_has_no_tail_waste():
    got = waves(H200, 264, 2)
    assert (got.count, got.capacity, got.tail, got.efficiency) == (1, 264, 264, 1.0)


def test_one_program_more_costs_a_whole_wave():
    got = waves(H200, 265, 2)
    assert (got.count, got.tail) == (2, 1)
    assert got.efficiency == pytest.approx(265 / 528)


def test_busy_processors_saturates():
    assert busy_processors(H200, 33) == pytest.approx(0.25)
    assert busy_processors(H200, 100_000) == 1.0


@pytest.mark.parametrize(("programs", "blocks"), [(0, 1), (1, 0)])
def test_empty_grids_are_errors(programs, blocks):
    with pytest.raises(ValueError, match="no waves"):
        waves(H200, programs, blocks)
