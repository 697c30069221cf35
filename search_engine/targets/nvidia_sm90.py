"""NVIDIA Hopper (H100, H200).

Identity
    Compute capability 9.0. Usual card: H200 SXM, 132 streaming multiprocessors.

Figures with source
    Limits: CUDA C++ Programming Guide, table of technical specifications per compute capability.
    Rates: NVIDIA H200 datasheet; the H100 SXM has the same processors and 3.35 TB/s.
    Reached on an H200 by simple kernels: copy 4.30 TB/s, bf16 matmul of 8192 cubed 796 TFLOP/s.

Rules of thumb
    Warpgroup matrix instructions need at least 64 rows and 4 warps: for 4096 cubed in bf16, tiles
    of 32x32x32 took 1 006 us on an H200, large tiles with grouped programs 183 us.
    A row kernel reaches the copy bandwidth when one block covers the row.
"""

from __future__ import annotations

from search_engine.domain.target import Figure, Target

TARGET = Target(
    name="sm_90",
    vendor="nvidia",
    backend="cuda",
    arch="90",
    warp_size=32,
    processors=132,
    warps_per_processor=64,
    blocks_per_processor=32,
    registers_per_processor=65_536,
    registers_per_thread=255,
    shared_bytes_per_processor=228 * 1024,
    shared_bytes_per_block=227 * 1024,
    shared_reserved_bytes=1024,
    memory_bandwidth=Figure(4.8e12, "bytes/s", "NVIDIA H200 datasheet"),
    matrix_rate=Figure(
        989.5e12,
        "16-bit floating-point operations/s, dense",
        "NVIDIA H200 datasheet, BF16 dense (1 979 TFLOP/s with sparsity)",
    ),
    vector_rate=Figure(67e12, "fp32 operations/s", "NVIDIA H200 datasheet"),
    l2_bytes=50 * 1024 * 1024,
    fp64_ratio=0.5,
)
