"""Matrix transpose in 64x64 tiles: whole segments of rows on both sides."""

import torch
import triton
import triton.language as tl


@triton.jit
def transpose_kernel(x_ptr, out_ptr, x_stride, out_stride, n_rows, n_cols, TILE: tl.constexpr):
    rows = tl.program_id(1) * TILE + tl.arange(0, TILE)
    cols = tl.program_id(0) * TILE + tl.arange(0, TILE)
    mask = (rows[:, None] < n_rows) & (cols[None, :] < n_cols)
    x = tl.load(x_ptr + rows[:, None].to(tl.int64) * x_stride + cols[None, :], mask=mask)
    out_ptrs = out_ptr + cols[:, None].to(tl.int64) * out_stride + rows[None, :]
    tl.store(out_ptrs, tl.trans(x), mask=tl.trans(mask))


# kernel-lsp: workload x=f32[16384,8192]
# kernel-lsp: workload x=f32[1000,300] weight=0.1
# kernel-lsp: reference x.T.contiguous()
def transpose(x: torch.Tensor) -> torch.Tensor:
    """A new contiguous matrix that holds the transpose of x."""
    n_rows, n_cols = x.shape
    out = torch.empty((n_cols, n_rows), dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(n_cols, 64), triton.cdiv(n_rows, 64))
    transpose_kernel[grid](x, out, x.stride(0), out.stride(0), n_rows, n_cols, TILE=64, num_warps=4)
    return out
