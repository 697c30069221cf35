"""A scaling of any length: by masks, and by block pointers that check their bounds."""

import torch
import triton
import triton.language as tl


@triton.jit
def scale(x_ptr, out_ptr, n, factor, BLOCK: tl.constexpr):
    first = tl.program_id(0) * BLOCK
    block = tl.make_block_ptr(x_ptr, (n,), (1,), (first,), (BLOCK,), (0,))
    x = tl.load(block, boundary_check=(0,), padding_option="zero")
    at = first + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, x * factor, mask=at < n)


# kernel-lsp: workload x=f32[1000]
def scaled(x):
    out = torch.empty_like(x)
    scale[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), 0.5, BLOCK=64)
    return out
