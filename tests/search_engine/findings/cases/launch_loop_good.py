"""A batch of small matrices scaled by one launch."""

import torch
import triton
import triton.language as tl


@triton.jit
def scale(x_ptr, out_ptr, n, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(out_ptr + at, x * factor, mask=at < n)


# kernel-lsp: workload x=f32[512,64,64]
def scaled(x):
    out = torch.empty_like(x)
    n = x.numel()
    scale[(triton.cdiv(n, 1024),)](x, out, n, 0.5, BLOCK=1024)
    return out
