"""Softmax of long rows in three loops, each of which reads the row again."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    top = -float("inf")
    for start in range(0, n, BLOCK):
        keep = start + cols < n
        x = tl.load(x_ptr + row * n + start + cols, mask=keep, other=-float("inf"))
        top = tl.maximum(top, tl.max(x.to(tl.float32), axis=0))
    total = 0.0
    for start in range(0, n, BLOCK):
        keep = start + cols < n
        again = tl.load(  # expect: KL205
            x_ptr + row * n + start + cols, mask=keep, other=-float("inf")
        )
        total += tl.sum(tl.exp(again.to(tl.float32) - top), axis=0)
    for start in range(0, n, BLOCK):
        keep = start + cols < n
        last = tl.load(x_ptr + row * n + start + cols, mask=keep, other=-float("inf"))
        y = tl.exp(last.to(tl.float32) - top) / total
        tl.store(out_ptr + row * n + start + cols, y.to(out_ptr.dtype.element_ty), mask=keep)


# kernel-lsp: workload x=f16[4096,32768]
def soft(x):
    out = torch.empty_like(x)
    softmax[(x.shape[0],)](x, out, x.shape[1], BLOCK=2048, num_warps=8)
    return out
