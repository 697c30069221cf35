"""Count the memory traffic that the interpreter sees, by numpy on the addresses of each access."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from search_engine.domain.facts import Traffic

_SECTOR_BYTES = 32
_LANES = 32
"""Neighbouring elements of a block tensor stand for a warp: the interpreter has no layouts."""


@dataclass(slots=True)
class TrafficCounter:
    """Sums over all programs of all launches of one call of the entry."""

    loaded_bytes: int = 0
    stored_bytes: int = 0
    atomic_operations: int = 0
    sectors: int = 0
    programs: int = 0

    def access(self, kind: str, addresses: Any, active: Any, size: int) -> None:
        """One load, store or atomic; ``addresses`` and ``active`` are flat numpy arrays."""
        lanes = int(active.sum())
        if kind == "load":
            self.loaded_bytes += lanes * size
        elif kind == "store":
            self.stored_bytes += lanes * size
        else:
            self.atomic_operations += lanes
        self.sectors += sectors(addresses, active)

    def total(self) -> Traffic:
        """The counts as facts."""
        return Traffic(
            self.loaded_bytes, self.stored_bytes, self.atomic_operations, self.sectors,
            self.programs,
        )  # fmt: skip


def sectors(addresses: Any, active: Any) -> int:
    """Distinct 32-byte sectors in each group of 32 neighbouring active lanes, summed."""
    import numpy as np

    count = len(addresses)
    padded = -(-count // _LANES) * _LANES
    touched = np.full(padded, -1, dtype=np.int64)
    touched[:count] = np.where(active, (addresses // _SECTOR_BYTES).astype(np.int64), -1)
    ordered = np.sort(touched.reshape(-1, _LANES), axis=1)
    first = ordered[:, :1] >= 0
    new = (ordered[:, 1:] != ordered[:, :-1]) & (ordered[:, 1:] >= 0)
    return int(first.sum() + new.sum())
