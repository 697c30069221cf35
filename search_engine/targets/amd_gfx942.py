"""AMD CDNA 3 (MI300X, MI325X).

Identity
    gfx942. Usual card: MI300X, 304 compute units in eight dies, wavefronts of 64 lanes.

Figures with source
    Limits: LLVM AMDGPU back end (four SIMDs a unit, eight wavefronts each, 512 vector registers a
    lane in steps of 8, at most 16 workgroups of several wavefronts), CDNA 3 instruction set guide.
    Rates: AMD data sheets. The MI300X has 5.3 TB/s; the floor uses the MI325X, the fastest of the
    architecture. L2 is 4 MiB a die; 256 MiB of Infinity Cache lie behind it.

Rules of thumb
    A warp is 64 lanes, so 4 warps here are 8 of NVIDIA; 16 warps are the largest block.
    64 KiB of shared memory hold two buffers of a 128x128x64 tile of 16-bit values, no more.
    The grid should be a multiple of the 304 units; work is dealt to the eight dies in turn.
"""

from __future__ import annotations

from search_engine.domain.target import Figure, Target

TARGET = Target(
    name="gfx942",
    vendor="amd",
    backend="hip",
    arch="gfx942",
    warp_size=64,
    processors=304,
    warps_per_processor=32,
    blocks_per_processor=16,
    registers_per_processor=131_072,
    registers_per_thread=512,
    shared_bytes_per_processor=64 * 1024,
    shared_bytes_per_block=64 * 1024,
    shared_reserved_bytes=0,
    memory_bandwidth=Figure(6e12, "bytes/s", "AMD Instinct MI325X data sheet"),
    matrix_rate=Figure(
        1307.4e12,
        "16-bit floating-point operations/s, dense",
        "AMD Instinct MI300X data sheet, BF16 dense",
    ),
    vector_rate=Figure(163.4e12, "fp32 operations/s", "AMD Instinct MI300X data sheet"),
    l2_bytes=32 * 1024 * 1024,
    fp64_ratio=0.5,
)
