"""A copy with 64-bit row offsets, as large tensors need them, in wide accesses."""

import torch
import triton
import triton.language as tl


@triton.jit
def copy_rows(x_ptr, y_ptr, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + cols, mask=cols < n)
    tl.store(y_ptr + row * stride + cols, x, mask=cols < n)


# kernel-lsp: workload x=f32[16384,16384]
def copied(x):
    y = torch.empty_like(x)
    rows, n = x.shape
    copy_rows[(rows, triton.cdiv(n, 4096))](x, y, x.stride(0), n, BLOCK=4096)
    return y
