"""One atomic a program, after the program has added up its part."""

import torch
import triton
import triton.language as tl


@triton.jit
def sum_all(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        at = start + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.atomic_add(out_ptr, tl.sum(acc, axis=0))


# kernel-lsp: workload x=f32[33554432]
def total(x):
    out = torch.zeros(1, device=x.device)
    sum_all[(528,)](x, out, x.numel(), BLOCK=4096, num_warps=8)
    return out
