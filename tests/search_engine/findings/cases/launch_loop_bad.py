"""A batch of small matrices scaled one after the other, a launch each."""

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
    n = x[0].numel()
    for i in range(x.shape[0]):  # expect: KL210
        scale[(triton.cdiv(n, 1024),)](x[i], out[i], n, 0.5, BLOCK=1024)
    return out
