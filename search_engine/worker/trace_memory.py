"""Made-up addresses: every tensor of a launch lies alone in a wide stretch of an address space.

So an address tells which tensor it was computed from, also where it lies outside of it.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

from search_engine.domain.workload import TensorArgument

_SLOT_BITS = 44
"""A tensor of 8 TiB, or an offset that overflowed 32 bits, stays in its stretch."""
_MIDDLE = 1 << (_SLOT_BITS - 1)
"""Where a tensor's storage begins in its stretch: a multiple of any alignment."""


@dataclass(slots=True, eq=False)
class Region:
    """The storage of one tensor: ``start`` and ``end`` are its first address and the one behind."""

    name: str | None
    """The kernel's parameter; None for memory that only its address leads to."""
    start: int
    end: int
    tensor_bytes: int
    """Of the tensor itself, which may be a part of its storage."""
    contents: Any = None
    """The storage's bytes as a flat numpy array, where its values are known."""
    drawn: TensorArgument | None = None
    """The declared argument, where values are drawn by position."""
    written_by: tuple[int, int, int] | None = None
    """The last program that stored a tile here."""
    stale: bool = False
    """Something was stored here: the contents are those before the launch."""


class AddressSpace:
    """Gives tensors addresses and finds the tensor of an address."""

    def __init__(self) -> None:
        self._slots = itertools.count(1)
        self._regions: dict[int, Region] = {}
        self._of_storage: dict[int, Region] = {}
        self._kept: list[Any] = []
        """Storages whose identity is a key: while they live it is not given again."""
        self._aliases: dict[int, tuple[Any, int]] = {}

    def place(self, alias: Any, name: str) -> Region:
        """Give a parameter's tensor a stretch of its own. ``alias`` is no other parameter's."""
        region = self._placed(alias, name)
        self._aliases[id(alias)] = alias, region.start + _offset(alias)
        return region

    def leave(self) -> None:
        """Forget the parameters of a launch; their regions stay."""
        self._aliases.clear()

    def address(self, tensor: Any) -> int:
        """What ``data_ptr`` answers: tensors on one storage share a stretch."""
        placed = self._aliases.get(id(tensor))
        if placed is not None:
            return placed[1]
        storage = tensor.untyped_storage()
        if storage._cdata not in self._of_storage:
            self._of_storage[storage._cdata] = self._placed(tensor, None)
        return self._of_storage[storage._cdata].start + _offset(tensor)

    def region(self, address: int) -> Region | None:
        """The tensor that an address was computed from, or None if from no tensor's."""
        return self._regions.get(address >> _SLOT_BITS)

    def _placed(self, tensor: Any, name: str | None) -> Region:
        slot = next(self._slots)
        start = (slot << _SLOT_BITS) + _MIDDLE
        storage = tensor.untyped_storage()
        self._kept.append(storage)
        held = int(storage.nbytes())
        size = min(tensor.numel() * tensor.element_size(), held)
        region = Region(name, start, start + held, size)
        self._regions[slot] = region
        return region


def one_region(lowest: int, highest: int) -> bool:
    """True if two addresses lie in the stretch of one tensor."""
    return lowest >> _SLOT_BITS == highest >> _SLOT_BITS


def slots(addresses: Any) -> Any:
    """For each address, a number that is the same for all addresses of one stretch."""
    return addresses >> addresses.dtype.type(_SLOT_BITS)


def _offset(tensor: Any) -> int:
    return int(tensor.storage_offset()) * int(tensor.element_size())
