"""Roofline times and fractions, with units."""

import pytest

from search_engine.predict.roofline import physical_floor_us, roofline_fraction, roofline_us
from search_engine.targets.registry import target_named


def test_memory_bound_kernel():
    # 8192 x 8192 fp32 read and written at 4.3 TB/s.
    line = roofline_us(2 * 4 * 8192**2, 5 * 8192**2, 4.3e12, 796e12)
    assert line is not None
    assert line.bound == "memory"
    assert line.time_us == pytest.approx(124.9, abs=0.1)
    assert roofline_fraction(line, 133.0) == pytest.approx(0.939, abs=0.001)


def test_compute_bound_kernel():
    line = roofline_us(3 * 2 * 4096**2, 2 * 4096**3, 4.3e12, 796e12)
    assert line is not None
    assert line.bound == "compute"
    assert line.time_us == pytest.approx(172.7, abs=0.1)


def test_nothing_known_is_no_roofline():
    assert roofline_us(0, 0, 4.3e12, 796e12) is None


def test_wrong_rates_and_times_are_errors():
    with pytest.raises(ValueError, match="positive"):
        roofline_us(1, 1, 0, 1)
    line = roofline_us(1e6, 0, 1e12, 1e12)
    assert line is not None
    with pytest.raises(ValueError, match="positive"):
        roofline_fraction(line, 0.0)


def test_the_floor_lies_below_what_a_measured_roofline_says():
    target = target_named("sm_90")
    moved, operations = 2 * 4 * 8192**2, 2 * 4096**3
    floor = physical_floor_us(target, moved, operations, 0, 1)
    line = roofline_us(moved, operations, 4.3e12, 796e12)
    assert line is not None
    assert floor < line.time_us


def test_the_floor_counts_what_a_cache_may_hold():
    target = target_named("sm_90")
    assert physical_floor_us(target, 40e6, 0, 50e6, 1) == 0
    assert physical_floor_us(target, 98e6, 0, 50e6, 1) == pytest.approx(10.0)


def test_narrow_operands_halve_the_compute_floor():
    target = target_named("sm_90")
    wide = physical_floor_us(target, 0, 1e12, 0, 1)
    assert physical_floor_us(target, 0, 1e12, 0, 2) == pytest.approx(wide / 2)
