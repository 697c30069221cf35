"""NVIDIA Blackwell for the data centre (B200, GB200).

Identity
    Compute capability 10.0. Usual card: B200, 148 streaming multiprocessors.

Figures with source
    Limits: CUDA C++ Programming Guide, table of technical specifications per compute capability.
    The physical floor must hold for every card, so the rates are those of the GB200 at 1200 W; the
    B200 of an HGX board has 2.25 PFLOP/s BF16 and 80 TFLOP/s fp32. fp64 is half of fp32.

Rules of thumb
    Matrix instructions accumulate in tensor memory, which limits blocks a processor besides
    registers and shared memory; occupancy here does not count it.
    128x256x64 tiles with 8 warps are the first thing to try for a matmul.
"""

from __future__ import annotations

from search_engine.domain.target import Figure, Target

TARGET = Target(
    name="sm_100",
    vendor="nvidia",
    backend="cuda",
    arch="100",
    warp_size=32,
    processors=148,
    warps_per_processor=64,
    blocks_per_processor=32,
    registers_per_processor=65_536,
    registers_per_thread=255,
    shared_bytes_per_processor=228 * 1024,
    shared_bytes_per_block=227 * 1024,
    shared_reserved_bytes=1024,
    memory_bandwidth=Figure(8e12, "bytes/s", "NVIDIA GB200 NVL72 datasheet, per GPU"),
    matrix_rate=Figure(
        2.5e15, "16-bit floating-point operations/s, dense", "NVIDIA GB200 datasheet, BF16 dense"
    ),
    vector_rate=Figure(
        90e12, "fp32 operations/s", "NVIDIA Blackwell architecture brief, GB200 at 1200 W"
    ),
    l2_bytes=126 * 1024 * 1024,
    fp64_ratio=0.5,
)
