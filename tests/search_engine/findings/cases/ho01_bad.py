"""A blend of two images with one block for a whole image plane: registers do not suffice."""

import torch
import triton
import triton.language as tl


@triton.jit
def blend(a_ptr, b_ptr, out_ptr, n, alpha, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    keep = cols < n
    at = tl.program_id(0) * n + cols
    a = tl.load(a_ptr + at, mask=keep, other=0.0)
    b = tl.load(b_ptr + at, mask=keep, other=0.0)
    mixed = a * alpha + b * (1.0 - alpha)  # expect: KL102
    low, high = tl.min(mixed, axis=0), tl.max(mixed, axis=0)
    tl.store(out_ptr + at, (mixed - low) / (high - low), mask=keep)


# kernel-lsp: workload a=f32[512,12544] b=f32[512,12544] alpha=0.5
def blended(a, b, alpha):
    out = torch.empty_like(a)
    n = a.shape[1]
    blend[(a.shape[0],)](a, b, out, n, alpha, BLOCK=triton.next_power_of_2(n), num_warps=2)
    return out
