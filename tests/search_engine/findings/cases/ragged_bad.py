"""A scaling without masks, right for multiples of the block only."""

import torch
import triton
import triton.language as tl


@triton.jit
def scale(x_ptr, out_ptr, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at)  # expect: KL251
    tl.store(out_ptr + at, x * factor)  # expect: KL251


# kernel-lsp: workload x=f32[1000]
def scaled(x):
    out = torch.empty_like(x)
    scale[(triton.cdiv(x.numel(), 64),)](x, out, 0.5, BLOCK=64)
    return out
