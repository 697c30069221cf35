"""Sum of each column in two stages: tiles of whole row segments, then their partial sums."""

import torch
import triton
import triton.language as tl

SPLITS = 32
"""Slices of the rows; with 128 columns a program, 8192 columns give 2048 programs."""


@triton.jit
def partial_sum_kernel(
    x_ptr,
    partial_ptr,
    x_stride,
    n_rows,
    n_cols,
    rows_per_split,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    split = tl.program_id(1)
    first = split * rows_per_split
    last = tl.minimum(first + rows_per_split, n_rows)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(first, last, BLOCK_M):
        rows = start + tl.arange(0, BLOCK_M)
        offsets = rows[:, None].to(tl.int64) * x_stride + cols[None, :]
        mask = (rows[:, None] < last) & (cols[None, :] < n_cols)
        acc += tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    tl.store(partial_ptr + split * n_cols + cols, tl.sum(acc, axis=0), mask=cols < n_cols)


@triton.jit
def combine_kernel(partial_ptr, out_ptr, n_cols, SPLITS: tl.constexpr, BLOCK_N: tl.constexpr):
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    splits = tl.arange(0, SPLITS)
    offsets = splits[:, None] * n_cols + cols[None, :]
    partial = tl.load(partial_ptr + offsets, mask=cols[None, :] < n_cols, other=0.0)
    total = tl.sum(partial, axis=0)
    tl.store(out_ptr + cols, total.to(out_ptr.dtype.element_ty), mask=cols < n_cols)


# kernel-lsp: workload x=f32[16384,8192]
# kernel-lsp: workload x=f32[1000,300] weight=0
# kernel-lsp: reference x.sum(dim=0)
def column_sum(x: torch.Tensor) -> torch.Tensor:
    """Sum of each column of a matrix."""
    n_rows, n_cols = x.shape
    out = torch.empty(n_cols, dtype=x.dtype, device=x.device)
    partial = torch.empty((SPLITS, n_cols), dtype=torch.float32, device=x.device)
    grid = (triton.cdiv(n_cols, 128), SPLITS)
    partial_sum_kernel[grid](
        x,
        partial,
        x.stride(0),
        n_rows,
        n_cols,
        triton.cdiv(n_rows, SPLITS),
        BLOCK_M=32,
        BLOCK_N=128,
        num_warps=4,
    )
    combine_kernel[(triton.cdiv(n_cols, 32),)](partial, out, n_cols, SPLITS=SPLITS, BLOCK_N=32)
    return out
