"""Sum over the long leading axes of a tensor: four programs walk 50,176 rows each."""

import torch
import triton
import triton.language as tl


@triton.jit
def sum_rows(x_ptr, out_ptr, n_rows, n_cols, ROWS: tl.constexpr, COLS: tl.constexpr):
    cols = tl.program_id(0) * COLS + tl.arange(0, COLS)
    acc = tl.zeros((ROWS, COLS), dtype=tl.float32)
    for start in range(0, n_rows, ROWS):  # expect: KL207
        rows = start + tl.arange(0, ROWS)
        keep = (rows < n_rows)[:, None] & (cols < n_cols)[None, :]
        acc += tl.load(x_ptr + rows[:, None] * n_cols + cols[None, :], mask=keep, other=0.0)
    tl.store(out_ptr + cols, tl.sum(acc, axis=0), mask=cols < n_cols)


# kernel-lsp: workload x=f32[256,14,14,256]
def summed(x):
    n_cols = x.shape[-1]
    n_rows = x.numel() // n_cols
    out = torch.empty(n_cols, device=x.device)
    sum_rows[(triton.cdiv(n_cols, 64),)](x, out, n_rows, n_cols, ROWS=128, COLS=64)  # expect: KL201
    return out
