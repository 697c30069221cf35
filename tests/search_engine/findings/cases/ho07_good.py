"""Sum over the long leading axes of a tensor: 64 parts of the rows, added up by a second kernel."""

import torch
import triton
import triton.language as tl


@triton.jit
def sum_part(
    x_ptr, part_ptr, n_rows, n_cols, part_rows, ROWS: tl.constexpr, COLS: tl.constexpr
):  # fmt: skip
    cols = tl.program_id(0) * COLS + tl.arange(0, COLS)
    part = tl.program_id(1)
    end = tl.minimum((part + 1) * part_rows, n_rows)
    acc = tl.zeros((ROWS, COLS), dtype=tl.float32)
    for start in range(part * part_rows, end, ROWS):
        rows = start + tl.arange(0, ROWS)
        keep = (rows < end)[:, None] & (cols < n_cols)[None, :]
        acc += tl.load(x_ptr + rows[:, None] * n_cols + cols[None, :], mask=keep, other=0.0)
    tl.store(part_ptr + part * n_cols + cols, tl.sum(acc, axis=0), mask=cols < n_cols)


@triton.jit
def add_parts(part_ptr, out_ptr, n_cols, PARTS: tl.constexpr, COLS: tl.constexpr):
    cols = tl.program_id(0) * COLS + tl.arange(0, COLS)
    parts = tl.arange(0, PARTS)
    keep = (cols < n_cols)[None, :]
    acc = tl.load(part_ptr + parts[:, None] * n_cols + cols[None, :], mask=keep, other=0.0)
    tl.store(out_ptr + cols, tl.sum(acc, axis=0), mask=cols < n_cols)


# kernel-lsp: workload x=f32[256,14,14,256]
def summed(x):
    n_cols, parts = x.shape[-1], 128
    n_rows = x.numel() // n_cols
    partial = torch.empty((parts, n_cols), device=x.device)
    out = torch.empty(n_cols, device=x.device)
    grid = (triton.cdiv(n_cols, 128), parts)
    sum_part[grid](
        x, partial, n_rows, n_cols, triton.cdiv(n_rows, parts), ROWS=64, COLS=128, num_warps=8
    )
    add_parts[(triton.cdiv(n_cols, 32),)](partial, out, n_cols, PARTS=parts, COLS=32)
    return out
