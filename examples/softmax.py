"""Row softmax in three looped passes: maximum, sum of exponentials, normalise."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, x_stride, out_stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x_row = x_ptr + row * x_stride
    out_row = out_ptr + row * out_stride
    cols = tl.arange(0, BLOCK)

    row_max = -float("inf")
    for start in range(0, n_cols, BLOCK):
        mask = start + cols < n_cols
        x = tl.load(x_row + start + cols, mask=mask, other=-float("inf")).to(tl.float32)
        row_max = tl.maximum(row_max, tl.max(x, axis=0))

    denominator = 0.0
    for start in range(0, n_cols, BLOCK):
        mask = start + cols < n_cols
        x = tl.load(x_row + start + cols, mask=mask, other=-float("inf")).to(tl.float32)
        denominator += tl.sum(tl.exp(x - row_max), axis=0)

    for start in range(0, n_cols, BLOCK):
        mask = start + cols < n_cols
        x = tl.load(x_row + start + cols, mask=mask, other=0.0).to(tl.float32)
        y = tl.exp(x - row_max) / denominator
        tl.store(out_row + start + cols, y.to(out_ptr.dtype.element_ty), mask=mask)


# kernel-lsp: workload x=f32[8192,8192]
# kernel-lsp: workload x=f32[128,1000] weight=0.1
# kernel-lsp: reference torch.softmax(x, dim=-1)
def softmax(x: torch.Tensor) -> torch.Tensor:
    """Softmax over the last dimension of a matrix."""
    n_rows, n_cols = x.shape
    out = torch.empty_like(x)
    softmax_kernel[(n_rows,)](x, out, x.stride(0), out.stride(0), n_cols, BLOCK=128)
    return out
