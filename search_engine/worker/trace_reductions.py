"""Reductions and scans with a combining function of the user's, on whole slices at a time.

The interpreter calls that function once for each element. It must be associative, so it may as
well be given every second element and its neighbour, in as many steps as the length has bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from search_engine.worker.trace_speed import Replacement


def replacements(steered: Callable[[], None]) -> list[Replacement]:
    """What stands in the interpreter during a trace; ``steered`` is called with each use."""
    from triton.runtime import interpreter

    def generic_reduce(self: Any, input: Any) -> list[Any]:
        steered()
        return _reduced(self, input)

    def generic_scan(self: Any, input: Any) -> list[Any]:
        steered()
        return _scanned(self, input)

    return [
        (interpreter.ReduceOps, "generic_reduce", generic_reduce),
        (interpreter.ScanOps, "generic_scan", generic_scan),
    ]


def _reduced(self: Any, input: Any) -> list[Any]:
    """``self`` is Triton's reduction: axis (None is all), combining function, kept dimensions."""
    import numpy as np

    axis: Any = self.axis
    arrays = [item.handle.data for item in input]
    rank = arrays[0].ndim
    if axis is None:
        slices = [array.reshape(-1) for array in arrays]
    else:
        slices = [np.moveaxis(array, axis, -1) for array in arrays]
    while slices[0].shape[-1] > 1:
        pairs = [item[..., 0::2] for item in slices], [item[..., 1::2] for item in slices]
        slices = _combined(self, input, *pairs)
    made: list[Any] = []
    for item, values in zip(input, slices, strict=True):
        result = values[..., 0]
        if self.keep_dims:
            whole = (1,) * rank
            result = result.reshape(whole) if axis is None else np.expand_dims(result, axis)
        made.append(self.to_tensor(result, item.dtype))
    return made


def _scanned(self: Any, input: Any) -> list[Any]:
    import numpy as np

    arrays = [np.moveaxis(item.handle.data, self.axis, -1).copy() for item in input]
    length, step = arrays[0].shape[-1], 1
    while step < length:
        # Whole arrays, since Triton wants powers of two; what comes round is not used.
        earlier = [np.roll(array, step, axis=-1) for array in arrays]
        new = _combined(self, input, earlier, arrays)
        for array, values in zip(arrays, new, strict=True):
            array[..., step:] = values[..., step:]
        step *= 2
    back = [np.moveaxis(array, -1, self.axis) for array in arrays]
    return [self.to_tensor(values, item.dtype) for item, values in zip(input, back, strict=True)]


def _combined(self: Any, input: Any, left: list[Any], right: list[Any]) -> list[Any]:
    import numpy as np

    given = [
        self.to_tensor(values, item.dtype)
        for side in (left, right)
        for item, values in zip(input, side, strict=True)
    ]
    result = self.combine_fn.fn(*given)
    results = result if isinstance(result, tuple) else (result,)
    return [
        np.broadcast_to(getattr(getattr(item, "handle", None), "data", item), values.shape).astype(
            values.dtype
        )
        for item, values in zip(results, left, strict=True)
    ]
