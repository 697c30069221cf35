"""How long messages took: the last few hundred of each method, for the report and the log."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

KEPT = 400
SLOW_SECONDS = 0.1
"""A message that holds the loop longer is logged."""


@dataclass(slots=True)
class Latencies:
    """Durations in seconds, by method."""

    _samples: dict[str, deque[float]] = field(default_factory=dict[str, deque[float]])

    def note(self, method: str, seconds: float) -> None:
        """Add one duration."""
        self._samples.setdefault(method, deque(maxlen=KEPT)).append(seconds)

    def table(self) -> tuple[tuple[str, int, float, float], ...]:
        """Method, sample, median and 99th percentile in milliseconds; by name."""
        rows: list[tuple[str, int, float, float]] = []
        for method, samples in sorted(self._samples.items()):
            ordered = sorted(samples)
            middle, last = len(ordered) // 2, int(0.99 * len(ordered))
            rows.append((method, len(ordered), 1e3 * ordered[middle], 1e3 * ordered[last]))
        return tuple(rows)
