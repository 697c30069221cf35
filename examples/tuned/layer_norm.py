"""Layer normalisation with the whole row held in registers: one read, one write."""

import torch
import triton
import triton.language as tl


@triton.jit
def layer_norm_kernel(
    x_ptr, w_ptr, b_ptr, out_ptr, x_stride, out_stride, n_cols, eps, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_stride + cols, mask=mask, other=0.0).to(tl.float32)

    mean = tl.sum(x, axis=0) / n_cols
    centred = tl.where(mask, x - mean, 0.0)
    inv_std = tl.rsqrt(tl.sum(centred * centred, axis=0) / n_cols + eps)
    # Loaded only now: held through both sums they cost registers, and a second block a processor.
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    y = centred * inv_std * w + b
    tl.store(out_ptr + row * out_stride + cols, y.to(out_ptr.dtype.element_ty), mask=mask)


# kernel-lsp: workload x=bf16[M:16384,N:8192] w=bf16[N]{normal*0.1+1} b=bf16[N]{normal*0.1}
# kernel-lsp: workload x=bf16[M:100,N:768] w=bf16[N]{normal*0.1+1} b=bf16[N]{normal*0.1} weight=0.1
# kernel-lsp: reference torch.nn.functional.layer_norm(x, (x.shape[-1],), w, b, eps)
def layer_norm(
    x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, eps: float = 1e-5
) -> torch.Tensor:
    """Normalise each row of a matrix to zero mean and unit variance, then scale and shift it."""
    n_rows, n_cols = x.shape
    out = torch.empty_like(x)
    block = triton.next_power_of_2(max(n_cols, 1))
    # Thirty-two elements a thread.
    num_warps = min(max(block // 1024, 1), 32)
    layer_norm_kernel[(n_rows,)](
        x, w, b, out, x.stride(0), out.stride(0), n_cols, eps, BLOCK=block, num_warps=num_warps
    )
    return out
