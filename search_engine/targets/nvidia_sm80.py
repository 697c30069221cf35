"""NVIDIA Ampere for the data centre (A100).

Identity
    Compute capability 8.0. Usual card: A100 80 GB SXM, 108 streaming multiprocessors.

Figures with source
    Limits: CUDA C++ Programming Guide, table of technical specifications per compute capability.
    Rates: NVIDIA A100 datasheet. fp64 is half of fp32 (9.7 against 19.5 TFLOP/s).

Rules of thumb
    cp.async hides loads with 3 to 5 stages; no TMA and no warpgroup matrix instructions.
    A matmul tile of 128x128x32 with 4 warps or 128x256x32 with 8 warps fills the matrix unit.
"""

from __future__ import annotations

from search_engine.domain.target import Figure, Target

TARGET = Target(
    name="sm_80",
    vendor="nvidia",
    backend="cuda",
    arch="80",
    warp_size=32,
    processors=108,
    warps_per_processor=64,
    blocks_per_processor=32,
    registers_per_processor=65_536,
    registers_per_thread=255,
    shared_bytes_per_processor=164 * 1024,
    shared_bytes_per_block=163 * 1024,
    shared_reserved_bytes=1024,
    memory_bandwidth=Figure(2.039e12, "bytes/s", "NVIDIA A100 datasheet, 80 GB SXM"),
    matrix_rate=Figure(
        312e12, "16-bit floating-point operations/s, dense", "NVIDIA A100 datasheet, BF16 dense"
    ),
    vector_rate=Figure(19.5e12, "fp32 operations/s", "NVIDIA A100 datasheet"),
    l2_bytes=40 * 1024 * 1024,
    fp64_ratio=0.5,
)
