"""Sum of each column, one program for each column."""

import torch
import triton
import triton.language as tl


@triton.jit
def column_sum_kernel(x_ptr, out_ptr, x_stride, n_rows, BLOCK: tl.constexpr):
    col = tl.program_id(0)
    total = 0.0
    for start in range(0, n_rows, BLOCK):
        rows = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + rows * x_stride + col, mask=rows < n_rows, other=0.0)
        total += tl.sum(x.to(tl.float32), axis=0)
    tl.store(out_ptr + col, total.to(out_ptr.dtype.element_ty))


# kernel-lsp: workload x=f32[16384,8192]
# kernel-lsp: workload x=f32[1000,300] weight=0
# kernel-lsp: reference x.sum(dim=0)
def column_sum(x: torch.Tensor) -> torch.Tensor:
    """Sum of each column of a matrix."""
    n_rows, n_cols = x.shape
    out = torch.empty(n_cols, dtype=x.dtype, device=x.device)
    column_sum_kernel[(n_cols,)](x, out, x.stride(0), n_rows, BLOCK=1024)
    return out
