"""Buffers with poison around them, so that a kernel that writes outside is caught.

Every byte outside a buffer is 0xFF: NaN in each float dtype of a workload, -1 in integers. What
lies inside an uninitialised buffer is poison too, so that an element nobody writes is seen. On
both sides lie at least ``GUARD_BYTES``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

GUARD_BYTES = 4096
_MOST_GUARD_BYTES = 4 << 20
_ROWS_IN_GUARD = 128
"""A tile of 128 rows that overruns a matrix by a whole tile still ends inside the guard."""
_ALIGNMENT = 512
"""What the device allocator gives; the interior starts at a multiple of it."""
POISON = 0xFF
SECOND_POISON = 0x5A
"""An unwritten integer that equals the first pattern by chance does not equal this one too."""


@dataclass(frozen=True, slots=True)
class Guarded:
    """One buffer: the whole allocation as bytes, and the tensor inside it."""

    name: str
    raw: Any
    tensor: Any
    first: int
    """Byte offset of the tensor's first element in ``raw``."""
    last: int
    """Byte offset behind the tensor's last element."""

    def damage(self) -> Any:
        """A boolean scalar tensor: true if a byte outside the buffer changed."""
        before, behind = self.raw[: self.first], self.raw[self.last :]
        return (before != POISON).any() | (behind != POISON).any()

    @property
    def addresses(self) -> tuple[int, int]:
        """First address of the buffer and the one behind it."""
        base = int(self.raw.data_ptr())
        return base + self.first, base + self.last


def reach(shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """Elements from the first to behind the last; 0 for an empty tensor."""
    if 0 in shape:
        return 0
    return 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))


def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of a row-major tensor, in elements."""
    return tuple(math.prod(max(n, 1) for n in shape[i + 1 :]) for i in range(len(shape)))


def allocate(
    name: str,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    dtype: Any,
    device: Any,
    misaligned: bool = False,
) -> Guarded:
    """A poisoned buffer of the given layout.

    The base pointer is 16-byte aligned, or one element off that if ``misaligned``.
    """
    import torch

    size = dtype.itemsize
    inside = reach(shape, strides) * size
    row = max((n * s for n, s in zip(shape[-1:], strides[-1:], strict=True)), default=1) * size
    guard = min(max(GUARD_BYTES, _ROWS_IN_GUARD * row), _MOST_GUARD_BYTES)
    guard = (guard // _ALIGNMENT + 1) * _ALIGNMENT
    first = guard + (size if misaligned else 0)
    total = (first + inside + guard + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT
    raw = torch.full((total,), POISON, dtype=torch.uint8, device=device)
    tensor = torch.empty(0, dtype=dtype, device=device)
    tensor.set_(raw.untyped_storage(), first // size, shape, strides)
    return Guarded(name, raw, tensor, first, first + inside)


@dataclass(slots=True)
class GuardedRun:
    """Buffers of one run: those given in and those the entry allocates itself."""

    poison: int = POISON
    buffers: list[Guarded] = field(default_factory=list[Guarded])

    def damaged(self) -> str | None:
        """The name of a buffer around which memory was written, or None."""
        import torch

        if not self.buffers:
            return None
        flags = torch.stack([buffer.damage().to("cpu") for buffer in self.buffers])
        found = flags.nonzero()
        return self.buffers[int(found[0])].name if len(found) else None

    def factories(self) -> Any:
        """A context in which torch's factory functions return guarded, poisoned buffers."""
        return _factories(self)


_INITIALISED = ("zeros", "zeros_like", "new_zeros", "ones", "ones_like", "new_ones", "full",
                "full_like", "new_full", "clone")  # fmt: skip
_UNINITIALISED = ("empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided")


def _factories(run: GuardedRun) -> Any:
    import torch
    from torch.overrides import TorchFunctionMode

    names = {
        getattr(owner, name): name
        for owner in (torch, torch.Tensor)
        for name in (*_UNINITIALISED, *_INITIALISED)
        if hasattr(owner, name)
    }

    class Factories(TorchFunctionMode):
        def __torch_function__(
            self, func: Any, _types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            made = func(*args, **(kwargs or {}))
            name = names.get(func)
            if name is None or not _replaceable(torch, made):
                return made
            return _replaced(run, made, name in _UNINITIALISED)

    return Factories()


def _replaceable(torch: Any, made: Any) -> bool:
    """Plain dense tensors without a gradient history."""
    return (
        type(made) is torch.Tensor
        and made.layout is torch.strided
        and not made.requires_grad
        and made.device.type in ("cpu", "cuda")
        and not (made.device.type == "cpu" and made.is_pinned())
        and made.numel() > 0
    )


def _replaced(run: GuardedRun, made: Any, uninitialised: bool) -> Any:
    index = len(run.buffers)
    shape, strides = tuple(made.shape), tuple(made.stride())
    buffer = allocate(f"buffer {index}", shape, strides, made.dtype, made.device)
    if not uninitialised:
        buffer.tensor.copy_(made)
    elif not made.is_floating_point():
        poison = run.poison if made.element_size() > 1 or made.dtype.is_signed else run.poison & 1
        buffer.raw[buffer.first : buffer.last] = poison
    run.buffers.append(buffer)
    return buffer.tensor
