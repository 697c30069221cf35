"""Histogram of small integers: each program counts in registers, then adds 256 sums."""

import torch
import triton
import triton.language as tl

PROGRAMS = 528
"""Four programs on each SM of an H200, so that the atomics at the end are few."""


@triton.jit
def histogram_kernel(x_ptr, counts_ptr, n_elements, BLOCK: tl.constexpr):
    counts = tl.zeros((256,), dtype=tl.int32)
    offsets = tl.arange(0, BLOCK)
    full_blocks = n_elements // BLOCK
    for block in range(tl.program_id(0), full_blocks, tl.num_programs(0)):
        counts += tl.histogram(tl.load(x_ptr + block * BLOCK + offsets), 256)
    if tl.program_id(0) == tl.num_programs(0) - 1:
        tail = full_blocks * BLOCK + offsets
        mask = tail < n_elements
        counts += tl.histogram(tl.load(x_ptr + tail, mask=mask, other=0), 256, mask=mask)
    tl.atomic_add(counts_ptr + tl.arange(0, 256), counts, sem="relaxed")


# kernel-lsp: workload x=i32[134217728]{0..255}
# kernel-lsp: workload x=i32[100003]{0..255} weight=0.1
# kernel-lsp: reference torch.bincount(x, minlength=256)
def histogram(x: torch.Tensor) -> torch.Tensor:
    """Count how often each of the values 0 to 255 occurs in x, which holds no others."""
    n_elements = x.numel()
    counts = torch.zeros(256, dtype=torch.int32, device=x.device)
    grid = (min(triton.cdiv(n_elements, 8192), PROGRAMS),)
    histogram_kernel[grid](x, counts, n_elements, BLOCK=8192, num_warps=8)
    return counts
