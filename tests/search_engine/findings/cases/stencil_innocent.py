"""A three-point stencil: each value is read three times, from a cache."""

import torch
import triton
import triton.language as tl


@triton.jit
def smooth(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    left = tl.load(x_ptr + at - 1, mask=(at > 0) & (at < n), other=0.0)
    here = tl.load(x_ptr + at, mask=at < n, other=0.0)
    right = tl.load(x_ptr + at + 1, mask=at < n - 1, other=0.0)
    tl.store(out_ptr + at, 0.25 * left + 0.5 * here + 0.25 * right, mask=at < n)


# kernel-lsp: workload x=f32[134217728]
def smoothed(x):
    out = torch.empty_like(x)
    smooth[(triton.cdiv(x.numel(), 2048),)](x, out, x.numel(), BLOCK=2048)
    return out
