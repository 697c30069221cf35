"""Intervals of timed samples. Pure, seeded, standard library only."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from search_engine.domain.statistics import median, paired_ratio

_RESAMPLES = 1000


def median_interval(samples: Sequence[float], seed: int) -> tuple[float, float, float]:
    """``(median, low, high)`` with a 95 % bootstrap interval. Raises ValueError if empty."""
    if not samples:
        raise ValueError("no samples")
    rng = random.Random(seed)
    draws = sorted(median(rng.choices(samples, k=len(samples))) for _ in range(_RESAMPLES))
    return median(samples), draws[int(0.025 * _RESAMPLES)], draws[int(0.975 * _RESAMPLES) - 1]


def noise(first: Sequence[float], second: Sequence[float], seed: int) -> float:
    """Half the 95 % interval of the log ratio of two series of the same kernel, paired by round.

    What no claim may fall below. Raises ValueError if there are no pairs.
    """
    _, low, high = paired_ratio(first, second, seed)
    return (math.log(high) - math.log(low)) / 2
