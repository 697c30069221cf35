"""Rows padded to 80 halves: their stride is divisible by 16."""

import torch
import triton
import triton.language as tl


@triton.jit
def scaled(x_ptr, y_ptr, rows, stride, COLS: tl.constexpr, ROWS: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    col = tl.arange(0, COLS)
    at = row[:, None] * stride + col[None, :]
    x = tl.load(x_ptr + at, mask=row[:, None] < rows, other=0.0)
    tl.store(y_ptr + at, x * 2, mask=row[:, None] < rows)


# kernel-lsp: workload x=f16[262144,64]@(80,1)
# kernel-lsp: reference x * 2
def twice(x):
    y = torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device=x.device)
    scaled[(triton.cdiv(x.shape[0], 32),)](x, y, x.shape[0], x.stride(0), COLS=64, ROWS=32)
    return y
