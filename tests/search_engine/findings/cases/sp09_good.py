"""One exact division of a value of the row, then products for each element."""

import torch
import triton
import triton.language as tl


@triton.jit
def normalised(x_ptr, s_ptr, t_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + cols)
    s, t = tl.load(s_ptr + row), tl.load(t_ptr + row)
    w = x * tl.div_rn(1.0, s * t * (s + t))
    tl.store(y_ptr + row, tl.sum(w, axis=0))


# kernel-lsp: workload x=f32[4096,32768] s=f32[4096] t=f32[4096]
# kernel-lsp: reference (x / s[:, None] / t[:, None] / (s + t)[:, None]).sum(dim=1)
def row_sums(x, s, t):
    rows, n = x.shape
    y = torch.empty(rows, dtype=x.dtype, device=x.device)
    normalised[(rows,)](x, s, t, y, n, BLOCK=n, num_warps=4)
    return y
