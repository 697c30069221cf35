"""NVIDIA Ada (L40S, RTX 4090).

Identity
    Compute capability 8.9. Usual card: L40S, 142 streaming multiprocessors.

Figures with source
    Limits: CUDA C++ Programming Guide, table of technical specifications per compute capability.
    The physical floor must hold for every card of the architecture, so each rate is the highest of
    any: the RTX 4090 has more bandwidth (1 008 GB/s) than the L40S (864 GB/s), the L40S the faster
    matrix unit. Cache: NVIDIA Ada GPU architecture whitepaper. fp64 is 1/64 of fp32.

Rules of thumb
    48 warps a processor: blocks of 8 or 16 warps divide it, blocks of 32 leave a third idle.
    Shared memory holds 99 KiB a block: a 128x128x64 tile of 16-bit values fits with 3 stages.
    The large L2 serves most of a matmul's re-reads; fp64 is 64 times slower than fp32.
"""

from __future__ import annotations

from search_engine.domain.target import Figure, Target

TARGET = Target(
    name="sm_89",
    vendor="nvidia",
    backend="cuda",
    arch="89",
    warp_size=32,
    processors=142,
    warps_per_processor=48,
    blocks_per_processor=24,
    registers_per_processor=65_536,
    registers_per_thread=255,
    shared_bytes_per_processor=100 * 1024,
    shared_bytes_per_block=99 * 1024,
    shared_reserved_bytes=1024,
    memory_bandwidth=Figure(1.008e12, "bytes/s", "NVIDIA GeForce RTX 4090 specification"),
    matrix_rate=Figure(
        362e12, "16-bit floating-point operations/s, dense", "NVIDIA L40S datasheet, BF16 dense"
    ),
    vector_rate=Figure(91.6e12, "fp32 operations/s", "NVIDIA L40S datasheet"),
    l2_bytes=96 * 1024 * 1024,
    fp64_ratio=1 / 64,
)
