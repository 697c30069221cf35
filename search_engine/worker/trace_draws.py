"""Values of a declared tensor at given positions, for tensors too large to build.

A position always has the same value, and values are spread as declared; they are not the values
that other jobs draw from a seed.
"""

from __future__ import annotations

import math
from typing import Any

from search_engine.domain.workload import Distribution, TensorArgument

_FACTORS = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9)
"""Odd constants with well mixed bits: golden ratio and splitmix64."""
_SPREAD = math.sqrt(12)
"""A uniform number has this fraction of its range as standard deviation."""


def can_draw(argument: TensorArgument) -> bool:
    """False for values that exist in a file only."""
    return argument.values.distribution is not Distribution.RECORDED


def draw_at(argument: TensorArgument, positions: Any) -> Any:
    """Values at positions, counted in elements of the storage; int64 or float64."""
    import numpy as np

    kind, parameters = argument.values.distribution, argument.values.parameters
    positions = positions - argument.offset
    count = max(math.prod(argument.shape), 1)
    match kind:
        case Distribution.INTEGERS:
            low, high = map(int, parameters)
            return low + (_mixed(positions) % np.uint64(high - low + 1)).astype(np.int64)
        case Distribution.SORTED:
            low, high = map(int, parameters)
            return low + positions * (high - low + 1) // count
        case Distribution.OFFSETS:
            return positions * int(parameters[0]) // max(count - 1, 1)
        case Distribution.DISTINCT:
            return positions * _coprime(int(parameters[0])) % int(parameters[0])
        case Distribution.PERMUTATION:
            return positions * _coprime(count) % count
        case Distribution.BERNOULLI:
            return (unit(positions) < (parameters[0] if parameters else 0.5)).astype(np.int64)
        case Distribution.ARANGE:
            return positions
        case Distribution.UNIFORM:
            low, high = parameters
            return low + unit(positions) * (high - low)
        case Distribution.NORMAL:
            scale, mean = parameters or (1.0, 0.0)
            return mean + (unit(positions) - 0.5) * _SPREAD * scale
        case _:
            return np.zeros(positions.shape, dtype=np.int64)


def unit(positions: Any) -> Any:
    """A number from 0 to 1 for each position."""
    import numpy as np

    return (_mixed(positions) >> np.uint64(11)).astype(np.float64) / (1 << 53)


def stored(values: Any, dtype: Any, name: str) -> Any:
    """Numbers as the interpreter stores Triton's type ``name`` in numpy's ``dtype``."""
    import numpy as np

    if name == "bf16":
        return (values.astype(np.float32).view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    if name.startswith("fp8"):  # any finite pattern: its arithmetic is not computed either
        return (_mixed((values * 1024).astype(np.int64)) & np.uint64(0xBF)).astype(np.uint8)
    return values.astype(dtype)


def _mixed(positions: Any) -> Any:
    import numpy as np

    mixed = positions.astype(np.int64).view(np.uint64) + np.uint64(_FACTORS[0])
    for factor in _FACTORS:
        mixed = (mixed ^ (mixed >> np.uint64(31))) * np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(29))


def _coprime(total: int) -> int:
    """A multiplier that maps 0 to total - 1 onto itself, neighbours far apart."""
    factor = max(int(total * (math.sqrt(5) - 1) / 2), 1)
    while math.gcd(factor, total) != 1:
        factor += 1
    return factor
