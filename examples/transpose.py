"""Matrix transpose, one row per program: contiguous reads, strided writes."""

import torch
import triton
import triton.language as tl


@triton.jit
def transpose_kernel(x_ptr, out_ptr, x_stride, out_stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < n_cols
        x = tl.load(x_ptr + row * x_stride + cols, mask=mask)
        tl.store(out_ptr + cols * out_stride + row, x, mask=mask)


# kernel-lsp: workload x=f32[16384,8192]
# kernel-lsp: workload x=f32[1000,300] weight=0.1
# kernel-lsp: reference x.T.contiguous()
def transpose(x: torch.Tensor) -> torch.Tensor:
    """A new contiguous matrix that holds the transpose of x."""
    n_rows, n_cols = x.shape
    out = torch.empty((n_cols, n_rows), dtype=x.dtype, device=x.device)
    transpose_kernel[(n_rows,)](x, out, x.stride(0), out.stride(0), n_cols, BLOCK=1024)
    return out
