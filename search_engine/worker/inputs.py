"""Arguments of one call: tensors in guarded buffers, scalars, and what the call may change."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from search_engine.domain.workload import Case, Role, ScalarArgument, TensorArgument, Workload
from search_engine.worker import guards, values
from search_engine.worker.guards import Guarded
from search_engine.worker.stand_ins import extents as named_extents
from search_engine.worker.values import Variant


class WorkloadError(Exception):
    """The workload cannot be built; the message says which argument and why."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """Arguments by name, with a copy of everything that a call may change or must not change.

    ``written`` names the tensors that the entry may write. ``pristine`` holds the whole raw buffer
    of each tensor, guards included, as it was before any call.
    """

    arguments: dict[str, Any]
    buffers: tuple[Guarded, ...]
    pristine: dict[str, Any]
    written: tuple[str, ...]

    def restore(self) -> None:
        """Put the tensors that the entry may write back to their first contents."""
        for buffer in self.buffers:
            if buffer.name in self.written:
                buffer.raw.copy_(self.pristine[buffer.name])

    def restore_all(self) -> None:
        """As ``restore``, for every tensor: after a version that wrote where it must not."""
        for buffer in self.buffers:
            buffer.raw.copy_(self.pristine[buffer.name])

    def changed(self) -> str | None:
        """The name of a tensor that may not be written and was, its guards included, or None."""
        import torch

        for buffer in self.buffers:
            kept = buffer.name in self.written
            if not kept and not torch.equal(buffer.raw, self.pristine[buffer.name]):
                return buffer.name
        return None


def build(
    case: Case,
    workload: Workload,
    seed: int,
    device: str,
    root: Path,
    variant: Variant = Variant.NORMAL,
    misaligned: bool = False,
) -> Inputs:
    """Build the arguments of a case on ``device``.

    The same seed gives the same values on every device up to ``values.HOST_ELEMENTS`` elements a
    tensor. Raises WorkloadError.
    """
    sizes = named_extents(case)
    arguments: dict[str, Any] = {}
    buffers: list[Guarded] = []
    for position, item in enumerate(case.arguments):
        if isinstance(item, ScalarArgument):
            arguments[item.name] = scalar(item, sizes)
            continue
        buffer = _tensor(item, variant, seed * 1009 + position, device, root, misaligned)
        buffers.append(buffer)
        arguments[item.name] = buffer.tensor
    written = tuple(b.name for b in buffers if _is_written(b.name, case, workload))
    pristine = {buffer.name: buffer.raw.clone() for buffer in buffers}
    return Inputs(arguments, tuple(buffers), pristine, written)


def scalar(item: ScalarArgument, sizes: dict[str, int]) -> Any:
    """The value of a scalar argument. Raises WorkloadError."""
    import torch

    scope: dict[str, Any] = {"torch": torch, "math": math, "inf": math.inf, "nan": math.nan}
    scope.update({"true": True, "false": False, "none": None, **sizes})
    try:
        return eval(item.expression, scope)
    except (NameError, SyntaxError, TypeError, ValueError, ArithmeticError) as error:
        message = f"`{item.name}={item.expression}` cannot be evaluated: {error}"
        raise WorkloadError(message) from error


def buffers_of(case: Case, workload: Workload) -> tuple[str, ...]:
    """Names of the tensor arguments that the entry may write, in parameter order."""
    return tuple(
        item.name
        for item in case.arguments
        if isinstance(item, TensorArgument) and _is_written(item.name, case, workload)
    )


def _is_written(name: str, case: Case, workload: Workload) -> bool:
    if name in workload.inplace:
        return True
    return any(
        isinstance(item, TensorArgument) and item.name == name and item.role is not Role.INPUT
        for item in case.arguments
    )


def _tensor(
    item: TensorArgument, variant: Variant, seed: int, device: str, root: Path, misaligned: bool
) -> Guarded:
    strides = item.strides if item.strides is not None else guards.contiguous_strides(item.shape)
    dtype = values.torch_dtype(item.dtype)
    off = misaligned or item.offset * dtype.itemsize % 16 != 0
    buffer = guards.allocate(item.name, item.shape, strides, dtype, device, off)
    if item.role is Role.OUTPUT:
        return buffer  # stays poison
    try:
        drawn = values.draw(item, variant, seed, device, root)
    except (ValueError, OSError, RuntimeError) as error:
        raise WorkloadError(f"`{item.name}` cannot be filled: {error}") from error
    if guards.reach(item.shape, strides) and 0 in strides:
        _fill_expanded(buffer.tensor, drawn, strides)
    else:
        buffer.tensor.copy_(drawn)
    return buffer


def _fill_expanded(tensor: Any, drawn: Any, strides: tuple[int, ...]) -> None:
    """Write each stored element once: dimensions of stride 0 have one element in memory."""
    for dimension, stride in enumerate(strides):
        if stride == 0:
            tensor, drawn = tensor.narrow(dimension, 0, 1), drawn.narrow(dimension, 0, 1)
    tensor.copy_(drawn)
