"""Ratios of paired times: median of log-ratios with a bootstrap interval. Pure, seeded.

Pairing by round makes drift of clocks and temperature cancel; see ``verification`` in the docs.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

_RESAMPLES = 1000
"""Enough for a 95 % interval whose own error is far below the noise of a timing."""


def median(values: Sequence[float]) -> float:
    """Median of at least one value."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


def paired_ratio(
    baseline_us: Sequence[float], candidate_us: Sequence[float], seed: int
) -> tuple[float, float, float]:
    """``(value, low, high)`` of baseline over candidate time; the interval is 95 %.

    Both sequences hold one sample per round, in round order. Raises ValueError if their lengths
    differ or are zero.
    """
    logs = [math.log(b / c) for b, c in zip(baseline_us, candidate_us, strict=True)]
    if not logs:
        raise ValueError("no samples")
    rng = random.Random(seed)
    draws = sorted(median(rng.choices(logs, k=len(logs))) for _ in range(_RESAMPLES))
    low, high = draws[int(0.025 * _RESAMPLES)], draws[int(0.975 * _RESAMPLES) - 1]
    return math.exp(median(logs)), math.exp(low), math.exp(high)


def geometric_mean(values: Sequence[float], weights: Sequence[float]) -> float:
    """Weighted geometric mean of positive values."""
    total = sum(weights)
    logs = (w * math.log(v) for v, w in zip(values, weights, strict=True))
    return math.exp(sum(logs) / total)
