"""A tuned norm: one block a row, constants that a model fixes, a weight that every row reads."""

import torch
import triton
import triton.language as tl


@triton.jit
def rms_norm(x_ptr, w_ptr, out_ptr, stride, eps, N: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + cols, mask=cols < N, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    y = x * tl.rsqrt(tl.sum(x * x, axis=0) / N + eps) * w
    tl.store(out_ptr + row * stride + cols, y.to(out_ptr.dtype.element_ty), mask=cols < N)


# kernel-lsp: workload x=bf16[16384,7168] w=bf16[7168]
def normed(x, w, eps=1e-6):
    out = torch.empty_like(x)
    n_rows, n_cols = x.shape
    block = triton.next_power_of_2(n_cols)
    rms_norm[(n_rows,)](x, w, out, x.stride(0), eps, N=n_cols, BLOCK=block, num_warps=8)
    return out
