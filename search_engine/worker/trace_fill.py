"""What a load of a traced program gives where memory is not there."""

from __future__ import annotations

import dataclasses
import enum
from dataclasses import dataclass
from typing import Any

from search_engine.domain.kernel import OperationKind
from search_engine.worker.trace_memory import Region, slots


class Fill(enum.Enum):
    """What loads give where values are not known."""

    ZEROS = "zeros"
    OTHER_INTEGERS = "other integers"
    """Small integers, to see whether they matter; floats are zero."""
    FLOATS = "floats"
    """Floats drawn as declared; integers are zero."""


@dataclass(frozen=True, slots=True)
class Access:
    """One load, store or atomic as the interpreter does it.

    ``addresses`` has the shape of the tile; ``active`` too, or is None if every lane is.
    """

    kind: OperationKind
    addresses: Any
    active: Any
    dtype: Any
    """Numpy's type of an element."""
    lanes: int
    """Of the tile; less for the part of an access that goes to one of several tensors."""


def called(access: Access, region: Region | None) -> str:
    name = f"`{region.name}`" if region is not None and region.name else "unnamed memory"
    if access.kind is OperationKind.ATOMIC:
        return f"results of atomics on {name}"
    return f"values of {name}"


def positions(region: Region, access: Access) -> Any:
    """Elements from the start of the storage, for each lane."""
    import numpy as np

    distances = (access.addresses - np.uint64(region.start)).view(np.int64)
    return distances // access.dtype.itemsize


def first(access: Access) -> int:
    """The address of the first active lane, or of the first lane."""
    at = 0 if access.active is None else int(access.active.argmax())
    return int(access.addresses.item(at))


def parts(access: Access) -> list[Access]:
    """An access to several tensors, apart by tensor; inactive lanes belong to the first part."""
    import numpy as np

    active = np.ones(access.addresses.shape, bool) if access.active is None else access.active
    of = slots(access.addresses)
    found = [active & (of == slot) for slot in np.unique(of[active])]
    inactive = access.lanes - int(active.sum())
    made: list[Access] = []
    for part in found:
        lanes = int(part.sum()) + (0 if made else inactive)
        made.append(dataclasses.replace(access, active=part, lanes=lanes))
    return made


def taken(region: Region, access: Access) -> Any:
    """Known values; zeros for lanes that are outside or inactive."""
    import numpy as np

    size = access.dtype.itemsize
    held = region.contents[: len(region.contents) // size * size].view(access.dtype)
    at = positions(region, access)
    inside = (at >= 0) & (at < len(held))
    if access.active is not None:
        inside &= access.active
    if not len(held):
        return np.zeros(at.shape, access.dtype)
    return np.where(inside, held[np.where(inside, at, 0)], np.zeros(1, access.dtype))
