"""Blocks that fit on one processor, from registers, shared memory and warps.

NVIDIA: the rules of ``cuda_occupancy.h`` (register files of four partitions, 256 registers a warp
at a time, shared memory in steps of 128 bytes plus the reserved part). AMD: those of LLVM's AMDGPU
back end (four SIMDs, 8 registers a lane at a time, workgroups of one wavefront need no barrier and
are limited by wavefronts alone). Tensor memory (sm_100), scalar registers and barriers are not
counted.
"""

from __future__ import annotations

from dataclasses import dataclass

from search_engine.domain.target import Target

_PARTITIONS = 4
"""Register files a processor, on every target of the registry."""


@dataclass(frozen=True, slots=True)
class Occupancy:
    """``fraction`` is resident warps over the processor's warps; ``limiters`` name what binds."""

    blocks: int
    fraction: float
    limiters: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Granularity:
    """Allocation steps: registers a warp, and bytes of shared memory a block."""

    registers: int
    shared_bytes: int


_GRANULARITY = {
    "nvidia": _Granularity(256, 128),
    "amd": _Granularity(8 * 64, 512),
    "gfx950": _Granularity(8 * 64, 1280),
}
"""By target name where one differs from its vendor's others."""


def occupancy(target: Target, registers: int, shared_bytes: int, warps: int) -> Occupancy:
    """Resident blocks of a kernel with ``registers`` a thread and ``warps`` a block.

    Zero blocks mean that the kernel cannot be launched. Raises ValueError if ``warps`` < 1.
    """
    if warps < 1:
        raise ValueError(f"a block has at least one warp, not {warps}")
    limits = {
        "warps": target.warps_per_processor // warps,
        "blocks": _block_limit(target, warps),
        "registers": _register_limit(target, registers, warps),
        "shared memory": _shared_limit(target, shared_bytes),
    }
    blocks = min(limits.values())
    limiters = tuple(name for name, limit in limits.items() if limit == blocks)
    return Occupancy(blocks, blocks * warps / target.warps_per_processor, limiters)


def _block_limit(target: Target, warps: int) -> int:
    if target.vendor == "amd" and warps == 1:
        return target.warps_per_processor
    return target.blocks_per_processor


def _register_limit(target: Target, registers: int, warps: int) -> int:
    if registers > target.registers_per_thread:
        return 0
    step = _steps(target).registers
    each = _rounded(max(1, registers) * target.warp_size, step)
    resident = target.registers_per_processor // _PARTITIONS // each * _PARTITIONS
    return resident // warps


def _shared_limit(target: Target, shared_bytes: int) -> int:
    if shared_bytes > target.shared_bytes_per_block:
        return 0
    step = _steps(target).shared_bytes
    each = _rounded(shared_bytes + target.shared_reserved_bytes, step)
    if each == 0:
        return target.warps_per_processor + 1  # more than the warps allow: never what binds
    return target.shared_bytes_per_processor // each


def _steps(target: Target) -> _Granularity:
    return _GRANULARITY.get(target.name) or _GRANULARITY[target.vendor]


def _rounded(value: int, step: int) -> int:
    return -(-value // step) * step
