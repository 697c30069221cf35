"""How many different bytes and addresses were touched, in bounded memory."""

from __future__ import annotations

from typing import Any

from search_engine.worker.trace_pattern import Pattern

_MOST_PENDING = 1 << 18
"""Intervals that wait to be merged: 4 MiB."""
_MOST_INTERVALS = 1 << 21
"""Intervals that are kept: 32 MiB. What comes later is taken to be new."""
_MOST_ADDRESSES = 1 << 18


class DistinctBytes:
    """The union of accesses, as disjoint intervals.

    Exact until more than ``_MOST_INTERVALS`` intervals are needed; from then on ``total`` counts
    every further byte as a new one, so it is an upper bound and ``exact`` is False.
    """

    def __init__(self) -> None:
        self.exact = True
        self._pending: dict[Pattern, set[int]] = {}
        self._waiting = 0
        self._kept: tuple[Any, Any] | None = None
        self._beyond = 0

    def add(self, pattern: Pattern, base: int) -> None:
        """Touch the bytes of an access whose first lane is at ``base``."""
        bases = self._pending.setdefault(pattern, set())
        if base in bases:
            return
        bases.add(base)
        self._waiting += len(pattern.intervals()[0])
        if self._waiting > _MOST_PENDING:
            self._merge()

    def total(self) -> int:
        """Different bytes so far."""
        self._merge()
        if self._kept is None:
            return self._beyond
        starts, ends = self._kept
        return int((ends - starts).sum()) + self._beyond

    def _merge(self) -> None:
        import numpy as np

        if not self._pending:
            return
        parts = [_placed(pattern, bases) for pattern, bases in self._pending.items()]
        self._pending.clear()
        self._waiting = 0
        if not self.exact:
            self._beyond += sum(int((ends - starts).sum()) for starts, ends in parts)
            return
        if self._kept is not None:
            parts.append(self._kept)
        starts = np.concatenate([starts for starts, _ in parts])
        self._kept = _union(starts, np.concatenate([ends for _, ends in parts]))
        self.exact = len(self._kept[0]) <= _MOST_INTERVALS


class AddressCounts:
    """How often each address was accessed; rare ones are forgotten when there are too many."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self.most = 0

    def add(self, pattern: Pattern, base: int) -> None:
        """Count every active lane of an access."""
        import numpy as np

        if pattern.count == 1:
            self._count(base + pattern.lowest, 1)
            return
        found, counts = np.unique(pattern.used, return_counts=True)
        for distance, count in zip(found.tolist(), counts.tolist(), strict=True):
            self._count(base + distance, count)
        if len(self._counts) > _MOST_ADDRESSES:
            least = min(self._counts.values())
            self._counts = {at: n for at, n in self._counts.items() if n > least}

    def _count(self, address: int, times: int) -> None:
        count = self._counts[address] = self._counts.get(address, 0) + times
        self.most = max(self.most, count)


def _placed(pattern: Pattern, bases: set[int]) -> tuple[Any, Any]:
    import numpy as np

    starts, ends = pattern.intervals()
    at = np.array(sorted(bases), dtype=np.int64)[:, None]
    return (at + starts).reshape(-1), (at + ends).reshape(-1)


def _union(starts: Any, ends: Any) -> tuple[Any, Any]:
    import numpy as np

    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], np.maximum.accumulate(ends[order])
    new = np.flatnonzero(starts[1:] > ends[:-1]) + 1
    first = np.concatenate(([0], new))
    last = np.concatenate((new - 1, [len(starts) - 1]))
    return starts[first], ends[last]
