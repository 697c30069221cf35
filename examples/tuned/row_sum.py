"""Sum of each row with one accumulator for each lane, reduced once at the end."""

import torch
import triton
import triton.language as tl


@triton.jit
def row_sum_kernel(x_ptr, out_ptr, x_stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        x = tl.load(x_ptr + row * x_stride + start + cols, mask=start + cols < n_cols, other=0.0)
        acc += x.to(tl.float32)
    tl.store(out_ptr + row, tl.sum(acc, axis=0).to(out_ptr.dtype.element_ty))


# kernel-lsp: workload x=f32[16384,8192]
# kernel-lsp: workload x=f32[100,3000] weight=0.1
# kernel-lsp: reference x.sum(dim=1)
def row_sum(x: torch.Tensor) -> torch.Tensor:
    """Sum of each row of a matrix."""
    n_rows, n_cols = x.shape
    out = torch.empty(n_rows, dtype=x.dtype, device=x.device)
    block = min(triton.next_power_of_2(max(n_cols, 1)), 8192)
    num_warps = min(max(block // 1024, 1), 8)
    row_sum_kernel[(n_rows,)](x, out, x.stride(0), n_cols, BLOCK=block, num_warps=num_warps)
    return out
