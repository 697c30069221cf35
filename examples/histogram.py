"""Histogram of small integers with one global atomic for each element."""

import torch
import triton
import triton.language as tl


@triton.jit
def histogram_kernel(x_ptr, counts_ptr, n_elements, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask, other=0)
    tl.atomic_add(counts_ptr + x, 1, mask=mask)


# kernel-lsp: workload x=i32[134217728]{0..255}
# kernel-lsp: workload x=i32[100003]{0..255} weight=0.1
# kernel-lsp: reference torch.bincount(x, minlength=256)
def histogram(x: torch.Tensor) -> torch.Tensor:
    """Count how often each of the values 0 to 255 occurs in x, which holds no others."""
    n_elements = x.numel()
    counts = torch.zeros(256, dtype=torch.int32, device=x.device)
    histogram_kernel[(triton.cdiv(n_elements, 1024),)](x, counts, n_elements, BLOCK=1024)
    return counts
