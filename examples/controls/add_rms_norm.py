"""Residual addition and RMS normalisation in one kernel that touches each element once."""

import torch
import triton
import triton.language as tl


@triton.jit
def add_rms_norm_kernel(
    x_ptr,
    residual_ptr,
    w_ptr,
    out_ptr,
    sum_ptr,
    x_stride,
    residual_stride,
    out_stride,
    sum_stride,
    n_cols,
    eps,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_stride + cols, mask=mask, other=0.0)
    residual = tl.load(residual_ptr + row * residual_stride + cols, mask=mask, other=0.0)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0)

    total = x.to(tl.float32) + residual.to(tl.float32)
    tl.store(sum_ptr + row * sum_stride + cols, total.to(sum_ptr.dtype.element_ty), mask=mask)
    scale = tl.rsqrt(tl.sum(total * total, axis=0) / n_cols + eps)
    y = total * scale * w.to(tl.float32)
    tl.store(out_ptr + row * out_stride + cols, y.to(out_ptr.dtype.element_ty), mask=mask)


# kernel-lsp: workload x=bf16[M:16384,N:4096] residual=bf16[M,N] w=bf16[N]{normal*0.1+1}
# kernel-lsp: workload x=bf16[M:100,N:768] residual=bf16[M,N] w=bf16[N]{normal*0.1+1} weight=0.1
# kernel-lsp: reference torch.nn.functional.rms_norm(x + residual, w.shape, w, eps), x + residual
def add_rms_norm(
    x: torch.Tensor, residual: torch.Tensor, w: torch.Tensor, eps: float = 1e-6
) -> tuple[torch.Tensor, torch.Tensor]:
    """The normalised rows of x + residual, and x + residual itself."""
    n_rows, n_cols = x.shape
    out = torch.empty_like(x)
    total = torch.empty_like(x)
    block = triton.next_power_of_2(max(n_cols, 1))
    # Sixteen elements a thread: two 16-byte loads of each operand.
    num_warps = min(max(block // 512, 1), 32)
    add_rms_norm_kernel[(n_rows,)](
        x,
        residual,
        w,
        out,
        total,
        x.stride(0),
        residual.stride(0),
        out.stride(0),
        total.stride(0),
        n_cols,
        eps,
        BLOCK=block,
        num_warps=num_warps,
    )
    return out, total
