"""What a configuration may ask of a target, by arithmetic that needs no compiler."""

from __future__ import annotations

from dataclasses import dataclass

from search_engine.domain.target import Target
from search_engine.domain.workload import Case, TensorArgument

MAX_BLOCK_ELEMENTS = 1 << 20
"""Triton refuses larger blocks (TRITON_MAX_TENSOR_NUMEL)."""
_MAX_THREADS = 1024
_MAX_ELEMENTS_PER_THREAD = 128
"""Half of the 255 registers that a thread has on NVIDIA; beyond it a block can only spill."""
_ACCUMULATOR_SHARE = 0.75
"""Of the registers; the rest holds operands and addresses."""
_BYTES = {"f8": 1, "i8": 1, "u8": 1, "b1": 1, "f16": 2, "bf16": 2, "i16": 2, "u16": 2}


@dataclass(frozen=True, slots=True)
class DotTile:
    """Names of the extents of a matrix product: rows, columns and the summed axis, if tunable."""

    m: str | None
    n: str | None
    k: str | None


def max_warps(target: Target) -> int:
    """32 for warps of 32 lanes, 16 for wavefronts of 64."""
    return _MAX_THREADS // target.warp_size


def default_option(target: Target, option: str) -> int:
    """What Triton takes where a launch does not say: 4 warps, 3 stages (2 on AMD)."""
    if option == "num_warps":
        return 4
    return 2 if target.vendor == "amd" else 3


def element_bytes(dtype: str) -> int:
    """Size of an element; sub-types of 8-bit floats share the prefix ``f8``."""
    if dtype.endswith("64"):
        return 8
    return _BYTES.get(dtype, _BYTES.get(dtype[:2], 4))


def operand_bytes(case: Case) -> int:
    """Size of the elements that a matrix product reads: the widest float of two dimensions."""
    sizes = [
        element_bytes(argument.dtype)
        for argument in case.arguments
        if isinstance(argument, TensorArgument)
        and len(argument.extents) >= 2
        and argument.dtype.startswith(("f", "bf"))
    ]
    return max(sizes, default=2)


def block_fits(target: Target, elements: int, warps: int) -> bool:
    """True if a block of so many elements is allowed and a thread can hold its share."""
    if elements > MAX_BLOCK_ELEMENTS or warps > max_warps(target):
        return False
    return elements <= _MAX_ELEMENTS_PER_THREAD * warps * target.warp_size


def dot_fits(
    target: Target, tile: tuple[int, int, int], warps: int, stages: int, bytes_each: int
) -> bool:
    """True if the operands fit in shared memory and the accumulator in registers.

    ``tile`` is (rows, columns, summed extent). AMD's pipeline keeps one buffer fewer than stages.
    """
    m, n, k = tile
    if m * n > MAX_BLOCK_ELEMENTS or warps > max_warps(target):
        return False
    buffers = max(1, stages - 1) if target.vendor == "amd" else max(1, stages)
    if buffers * (m * k + k * n) * bytes_each > target.shared_bytes_per_block:
        return False
    accumulator = m * n / (warps * target.warp_size)
    return accumulator <= _ACCUMULATOR_SHARE * (target.registers_per_thread + 1)
