"""The blend over all pixels at once, in blocks that only the last program has to cut."""

import torch
import triton
import triton.language as tl


@triton.jit
def blend(a_ptr, b_ptr, out_ptr, n, alpha, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = at < n
    a = tl.load(a_ptr + at, mask=keep, other=0.0)
    b = tl.load(b_ptr + at, mask=keep, other=0.0)
    mixed = a * alpha + b * (1.0 - alpha)
    tl.store(out_ptr + at, mixed, mask=keep)


# kernel-lsp: workload a=f32[512,37632] b=f32[512,37632] alpha=0.5
def blended(a, b, alpha):
    out = torch.empty_like(a)
    n = a.numel()
    blend[(triton.cdiv(n, 4096),)](a, b, out, n, alpha, BLOCK=4096)
    return out
