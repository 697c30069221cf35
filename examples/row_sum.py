"""Sum of each row, reducing every block to a scalar inside the loop."""

import torch
import triton
import triton.language as tl


@triton.jit
def row_sum_kernel(x_ptr, out_ptr, x_stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = 0.0
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * x_stride + cols, mask=cols < n_cols, other=0.0)
        total += tl.sum(x.to(tl.float32), axis=0)
    tl.store(out_ptr + row, total.to(out_ptr.dtype.element_ty))


# kernel-lsp: workload x=f32[16384,8192]
# kernel-lsp: workload x=f32[100,3000] weight=0.1
# kernel-lsp: reference x.sum(dim=1)
def row_sum(x: torch.Tensor) -> torch.Tensor:
    """Sum of each row of a matrix."""
    n_rows, n_cols = x.shape
    out = torch.empty(n_rows, dtype=x.dtype, device=x.device)
    row_sum_kernel[(n_rows,)](x, out, x.stride(0), n_cols, BLOCK=256)
    return out
