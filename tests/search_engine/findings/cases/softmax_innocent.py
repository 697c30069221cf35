"""Softmax with a row in one block: wide accesses, each row read once."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, y_ptr, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + cols, mask=cols < n, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + row * stride + cols, e / tl.sum(e, axis=0), mask=cols < n)


# kernel-lsp: workload x=f32[16384,8192]
# kernel-lsp: reference torch.softmax(x, dim=1)
def rows(x):
    y = torch.empty_like(x)
    softmax[(x.shape[0],)](x, y, x.stride(0), x.shape[1], BLOCK=8192, num_warps=8)
    return y
