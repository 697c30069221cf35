"""Paired ratios: drift cancels, and an interval that reaches one is no claim."""

from __future__ import annotations

import random

import pytest

from search_engine.domain.ordering import is_faster, is_slower, significance
from search_engine.domain.statistics import geometric_mean, paired_ratio
from search_engine.domain.verdict import Speedup


def test_common_drift_cancels() -> None:
    rng = random.Random(1)
    drift = [1.0 + 0.2 * k / 40 for k in range(40)]
    baseline = [100.0 * d * rng.gauss(1.0, 0.005) for d in drift]
    candidate = [80.0 * d * rng.gauss(1.0, 0.005) for d in drift]
    value, low, high = paired_ratio(baseline, candidate, 0)
    assert value == pytest.approx(1.25, rel=0.01)
    assert high - low < 0.03


def test_a_against_a_gives_no_claim() -> None:
    claims = 0
    for seed in range(200):
        rng = random.Random(seed)
        a = [100.0 * rng.gauss(1.0, 0.02) for _ in range(20)]
        b = [100.0 * rng.gauss(1.0, 0.02) for _ in range(20)]
        claims += is_faster(Speedup(*paired_ratio(a, b, seed)), significance(0.01))
    assert claims == 0


def test_three_percent_is_found_in_quiet_samples() -> None:
    found = 0
    for seed in range(100):
        rng = random.Random(seed)
        a = [103.0 * rng.gauss(1.0, 0.003) for _ in range(20)]
        b = [100.0 * rng.gauss(1.0, 0.003) for _ in range(20)]
        found += is_faster(Speedup(*paired_ratio(a, b, seed)), significance(0.001))
    assert found >= 95


def test_noise_raises_the_bar() -> None:
    speedup = Speedup(1.05, 1.04, 1.06)
    assert is_faster(speedup, significance(0.005))
    assert not is_faster(speedup, significance(0.03))


def test_slower_needs_the_whole_interval_and_the_margin() -> None:
    assert is_slower(Speedup(0.9, 0.85, 0.95), 0.02)
    assert not is_slower(Speedup(0.9, 0.85, 1.01), 0.02)
    assert not is_slower(Speedup(0.99, 0.985, 0.995), 0.02)


def test_unpaired_samples_are_refused() -> None:
    with pytest.raises(ValueError):
        paired_ratio([1.0, 2.0], [1.0], 0)
    with pytest.raises(ValueError):
        paired_ratio([], [], 0)


def test_geometric_mean_is_weighted() -> None:
    assert geometric_mean([4.0, 1.0], [1.0, 1.0]) == pytest.approx(2.0)
    assert geometric_mean([4.0, 1.0], [0.0, 1.0]) == pytest.approx(1.0)
