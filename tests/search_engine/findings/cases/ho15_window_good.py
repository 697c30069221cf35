"""Attention within a window of 1,024 tokens: the loop runs over the tiles of the window."""

import torch
import triton
import triton.language as tl


@triton.jit
def window_sum(
    w_ptr, x_ptr, out_ptr, length, window, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr
):  # fmt: skip
    first = tl.program_id(0) * BM
    rows, d = first + tl.arange(0, BM), tl.arange(0, D)
    acc = tl.zeros((BM, D), dtype=tl.float32)
    for start in range(tl.maximum(first - window, 0), first + BM, BN):
        cols = start + tl.arange(0, BN)
        near = (cols[None, :] <= rows[:, None]) & (cols[None, :] > rows[:, None] - window)
        w = tl.load(w_ptr + rows[:, None] * length + cols[None, :], mask=near, other=0.0)
        some = (cols < first + BM) & (cols > first - window)
        x = tl.load(x_ptr + cols[:, None] * D + d[None, :], mask=some[:, None], other=0.0)
        acc = tl.dot(w, x, acc)
    out = acc.to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + rows[:, None] * D + d[None, :], out)


# kernel-lsp: workload w=bf16[8192,8192] x=bf16[8192,128] window=1024
def mixed(w, x, window):
    length, dim = x.shape
    out = torch.empty_like(x)
    window_sum[(triton.cdiv(length, 128),)](w, x, out, length, window, D=dim, BM=128, BN=128)
    return out
