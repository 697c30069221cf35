"""Values by position are in the declared range, spread as declared, and the same each time."""

from __future__ import annotations

import pytest

numpy = pytest.importorskip("numpy")

from search_engine.domain.workload import (  # noqa: E402
    Distribution,
    Extent,
    TensorArgument,
    Values,
)
from search_engine.worker.trace_draws import can_draw, draw_at, stored  # noqa: E402

AT = numpy.arange(10000)


def _argument(distribution: Distribution, *parameters: float, offset: int = 0) -> TensorArgument:
    values = Values(distribution, tuple(map(float, parameters)))
    return TensorArgument("x", "i64", (Extent(10000),), values, offset=offset)


def _drawn(distribution: Distribution, *parameters: float):
    return draw_at(_argument(distribution, *parameters), AT)


def test_integers_fill_their_range_evenly():
    drawn = _drawn(Distribution.INTEGERS, 3, 12)
    counts = numpy.bincount(drawn, minlength=13)
    assert drawn.min() == 3 and drawn.max() == 12
    assert counts[3:].min() > 800 and counts[3:].max() < 1200
    assert (drawn == _drawn(Distribution.INTEGERS, 3, 12)).all()


@pytest.mark.parametrize(
    ("distribution", "parameters", "total"),
    [(Distribution.PERMUTATION, (), 10000), (Distribution.DISTINCT, (123456,), 123456)],
)
def test_values_without_repeats_are_different_and_in_no_order(distribution, parameters, total):
    drawn = _drawn(distribution, *parameters)
    assert len(set(drawn.tolist())) == 10000 and drawn.min() >= 0 and drawn.max() < total
    assert (numpy.abs(numpy.diff(drawn)) > total // 10).all(), "neighbours lie apart"


def test_sorted_values_and_offsets_rise():
    drawn = _drawn(Distribution.SORTED, 0, 99)
    assert (numpy.diff(drawn) >= 0).all() and (drawn[0], drawn[-1]) == (0, 99)
    drawn = _drawn(Distribution.OFFSETS, 70000)
    assert (numpy.diff(drawn) >= 0).all() and (drawn[0], drawn[-1]) == (0, 70000)


def test_positions_count_from_where_the_tensor_begins():
    found = draw_at(_argument(Distribution.ARANGE, offset=40), AT + 40)
    assert (found == AT).all()


def test_floats_and_truth_values_have_their_mean_and_range():
    drawn = _drawn(Distribution.UNIFORM, 2, 4)
    assert drawn.min() >= 2 and drawn.max() <= 4 and abs(drawn.mean() - 3) < 0.05
    drawn = _drawn(Distribution.NORMAL, 2, 5)
    assert abs(drawn.mean() - 5) < 0.1 and abs(drawn.std() - 2) < 0.1
    assert abs(_drawn(Distribution.BERNOULLI, 0.2).mean() - 0.2) < 0.03


def test_recorded_values_cannot_be_drawn():
    assert can_draw(_argument(Distribution.ZEROS))
    assert not can_draw(_argument(Distribution.RECORDED))


def test_bfloat16_is_stored_as_the_upper_half_of_a_float32():
    values = numpy.array([1.0, -2.0, 0.0])
    found = stored(values, numpy.dtype("uint16"), "bf16")
    assert found.dtype == numpy.uint16 and found.tolist() == [0x3F80, 0xC000, 0]
