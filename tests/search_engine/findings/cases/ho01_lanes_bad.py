"""A blend of images, a whole image of 3 x 112 x 112 in one block of the next power of two."""

import torch
import triton
import triton.language as tl


@triton.jit
def blend(a_ptr, b_ptr, out_ptr, n, alpha, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    keep = cols < n
    at = tl.program_id(0) * n + cols
    a = tl.load(a_ptr + at, mask=keep, other=0.0)  # expect: KL203
    b = tl.load(b_ptr + at, mask=keep, other=0.0)
    mixed = a * alpha + b * (1.0 - alpha)
    tl.store(out_ptr + at, mixed, mask=keep)


# kernel-lsp: workload a=f32[512,37632] b=f32[512,37632] alpha=0.5
def blended(a, b, alpha):
    out = torch.empty_like(a)
    n = a.shape[1]
    block = triton.next_power_of_2(n)
    blend[(a.shape[0],)](a, b, out, n, alpha, BLOCK=block, num_warps=32)
    return out
