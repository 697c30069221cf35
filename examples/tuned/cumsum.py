"""Running sum of each row, 8192 columns in one scan."""

import torch
import triton
import triton.language as tl


@triton.jit
def cumsum_kernel(
    x_ptr, out_ptr, x_stride, out_stride, n_cols, BLOCK: tl.constexpr, ONE_BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * x_stride
    out_ptr += row * out_stride
    cols = tl.arange(0, BLOCK)
    if ONE_BLOCK:
        mask = cols < n_cols
        x = tl.load(x_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        y = tl.cumsum(x, axis=0)
        tl.store(out_ptr + cols, y.to(out_ptr.dtype.element_ty), mask=mask)
    else:
        carry = 0.0
        for start in range(0, n_cols, BLOCK):
            mask = start + cols < n_cols
            x = tl.load(x_ptr + start + cols, mask=mask, other=0.0).to(tl.float32)
            y = tl.cumsum(x, axis=0) + carry
            tl.store(out_ptr + start + cols, y.to(out_ptr.dtype.element_ty), mask=mask)
            carry += tl.sum(x, axis=0)


# kernel-lsp: workload x=f32[16384,8192]
# kernel-lsp: workload x=f32[100,1000] weight=0.1
# kernel-lsp: reference torch.cumsum(x, dim=1)
def cumsum(x: torch.Tensor) -> torch.Tensor:
    """Running sum along each row of a matrix."""
    n_rows, n_cols = x.shape
    out = torch.empty_like(x)
    block = min(triton.next_power_of_2(max(n_cols, 1)), 8192)
    cumsum_kernel[(n_rows,)](
        x,
        out,
        x.stride(0),
        out.stride(0),
        n_cols,
        BLOCK=block,
        ONE_BLOCK=n_cols <= block,
        num_warps=min(max(block // 512, 1), 16),
    )
    return out
