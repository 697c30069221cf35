""" "Better than" in one place: when a measured ratio counts as faster, slower, or neither."""

from __future__ import annotations

from search_engine.domain.verdict import Speedup

SMALLEST_CLAIM = 0.02
"""Differences below 2 % mean nothing on a machine whose clocks move; measured spreads of repeated
medians were 0.2 to 2 %."""


def significance(noise: float) -> float:
    """Delta of a claim: the larger of 2 % and twice this run's own A/A noise."""
    return max(SMALLEST_CLAIM, 2.0 * noise)


def is_faster(speedup: Speedup, delta: float) -> bool:
    """The lower bound exceeds 1 + delta."""
    return speedup.low > 1.0 + delta


def is_slower(speedup: Speedup, delta: float) -> bool:
    """The whole interval lies below 1, and the ratio below 1 - delta."""
    return speedup.high < 1.0 and speedup.value < 1.0 - delta


def is_better(candidate_ratio: float, incumbent_ratio: float) -> bool:
    """Whether a screened ratio is worth proving against the incumbent's."""
    return candidate_ratio > incumbent_ratio * 1.01
