"""The shape of one access: what depends only on the distances between its lanes.

Accesses of a loop repeat a shape at another base, so a shape is measured once.
"""

from __future__ import annotations

from typing import Any

SECTOR_BYTES = 32
GROUP_LANES = 32
"""Neighbouring lanes that stand for a warp: the interpreter has no layouts."""

_MOST_STEPS = 8
_FAR = 1 << 62


class Pattern:
    """Distances of the lanes of one access from its first lane, in bytes, and which are active.

    ``distances`` has the shape of the tile; ``active`` too, or is None if every lane is active.
    At least one lane is active.
    """

    def __init__(self, distances: Any, active: Any, element_bytes: int) -> None:
        self._distances = distances
        self._active = active
        self._bytes = element_bytes
        signed = distances.view("int64")
        order = lane_order(signed)
        self._flat = signed.transpose(order).reshape(-1)
        self._on = None if active is None else active.transpose(order).reshape(-1)
        self.used = self._flat if self._on is None else self._flat[self._on]
        """Distances of the active lanes."""
        self.count = len(self.used)
        self.lowest = int(self.used.min())
        self.highest = int(self.used.max())
        self.steps = self._steps(signed.shape[order[-1]])
        """The most frequent steps between neighbouring active lanes, in bytes, with their count."""
        self.least_sectors = self._least_sectors()
        self._sectors: dict[int, int] = {}
        self._intervals: tuple[Any, Any] | None = None

    def matches(self, distances: Any, active: Any) -> bool:
        """True if an access has this shape."""
        if distances.shape != self._distances.shape or not (distances == self._distances).all():
            return False
        if active is None or self._active is None:
            return active is self._active
        return bool((active == self._active).all())

    def sectors(self, base: int) -> int:
        """Distinct sectors of each group of lanes, summed, if the first lane is at ``base``."""
        residue = base % SECTOR_BYTES
        if residue not in self._sectors:
            self._sectors[residue] = self._count_sectors(residue)
        return self._sectors[residue]

    def intervals(self) -> tuple[Any, Any]:
        """Starts and ends of the bytes touched, sorted and disjoint, as distances."""
        import numpy as np

        if self._intervals is None:
            at = np.unique(self.used)
            gap = np.flatnonzero(np.diff(at) > self._bytes)
            starts = np.concatenate((at[:1], at[gap + 1]))
            self._intervals = starts, np.concatenate((at[gap], at[-1:])) + self._bytes
        return self._intervals

    def _steps(self, length: int) -> tuple[tuple[int, int], ...]:
        import numpy as np

        if length < 2:
            return ()
        rows = self._flat.reshape(-1, length)
        steps = rows[:, 1:] - rows[:, :-1]
        if self._on is not None:
            on = self._on.reshape(-1, length)
            steps = steps[on[:, 1:] & on[:, :-1]]
        if steps.size == 0:
            return ()
        first = steps.flat[0]
        if (steps == first).all():
            return ((int(first), steps.size),)
        found, counts = np.unique(steps, return_counts=True)
        most = np.argsort(-counts, kind="stable")[:_MOST_STEPS]
        return tuple((int(found[i]), int(counts[i])) for i in most)

    def _least_sectors(self) -> int:
        import numpy as np

        if self._on is None:
            whole, rest = divmod(self.count, GROUP_LANES)
            return whole * _packed(GROUP_LANES, self._bytes) + _packed(rest, self._bytes)
        lanes = _grouped(self._on, False).sum(axis=1)
        return int(np.ceil(lanes * self._bytes / SECTOR_BYTES).sum())

    def _count_sectors(self, residue: int) -> int:
        touched = (self._flat + residue) // SECTOR_BYTES
        if self._on is not None:
            touched[~self._on] = _FAR
        ordered = _grouped(touched, _FAR)
        ordered.sort(axis=1)
        first = ordered[:, 0] != _FAR
        new = (ordered[:, 1:] != ordered[:, :-1]) & (ordered[:, 1:] != _FAR)
        return int(first.sum() + new.sum())


def lane_order(distances: Any) -> tuple[int, ...]:
    """Axes of a tile, the one with the smallest step last, as the compiler orders its lanes.

    Axes along which nothing moves come first. Of equal steps the last axis wins.
    """
    return tuple(sorted(range(distances.ndim), key=lambda axis: -_step(distances, axis)))


def _step(distances: Any, axis: int) -> int:
    """The usual distance of neighbours along an axis, in bytes, repeats left out."""
    import numpy as np

    line = distances[tuple(slice(None) if i == axis else 0 for i in range(distances.ndim))]
    steps = np.abs(np.diff(line))
    moving = steps[steps > 0]
    return int(np.median(moving)) if moving.size else _FAR


def _packed(lanes: int, element_bytes: int) -> int:
    return -(-lanes * element_bytes // SECTOR_BYTES)


def _grouped(flat: Any, filler: Any) -> Any:
    """Rows of one group of lanes each; the last one is filled up. A copy."""
    import numpy as np

    padded = np.full(-(-len(flat) // GROUP_LANES) * GROUP_LANES, filler, dtype=flat.dtype)
    padded[: len(flat)] = flat
    return padded.reshape(-1, GROUP_LANES)
