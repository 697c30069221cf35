"""AMD CDNA 4 (MI350X, MI355X).

Identity
    gfx950. Usual card: MI355X, 256 compute units in eight dies, wavefronts of 64 lanes.

Figures with source
    Limits: LLVM AMDGPU back end (as gfx942) and the CDNA 4 instruction set guide: 160 KiB of shared
    memory a unit. Rates: AMD Instinct MI355X data sheet. L2 is 4 MiB a die; 256 MiB of Infinity
    Cache lie behind it.

Rules of thumb
    As gfx942, but shared memory holds three stages of a 128x256x64 tile of 16-bit values.
    fp64 outside the matrix unit is half of fp32.
"""

from __future__ import annotations

from search_engine.domain.target import Figure, Target

TARGET = Target(
    name="gfx950",
    vendor="amd",
    backend="hip",
    arch="gfx950",
    warp_size=64,
    processors=256,
    warps_per_processor=32,
    blocks_per_processor=16,
    registers_per_processor=131_072,
    registers_per_thread=512,
    shared_bytes_per_processor=160 * 1024,
    shared_bytes_per_block=160 * 1024,
    shared_reserved_bytes=0,
    memory_bandwidth=Figure(8e12, "bytes/s", "AMD Instinct MI355X data sheet"),
    matrix_rate=Figure(
        2.5166e15,
        "16-bit floating-point operations/s, dense",
        "AMD Instinct MI355X data sheet, BF16 dense",
    ),
    vector_rate=Figure(157.3e12, "fp32 operations/s", "AMD Instinct MI355X data sheet"),
    l2_bytes=32 * 1024 * 1024,
    fp64_ratio=0.5,
)
