"""RMS normalisation with the whole row held in registers: one read, one write."""

import torch
import triton
import triton.language as tl


@triton.jit
def rms_norm_kernel(x_ptr, w_ptr, out_ptr, x_stride, out_stride, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_stride + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0)
    scale = tl.rsqrt(tl.sum(x * x, axis=0) / n_cols + eps)
    y = x * scale * w.to(tl.float32)
    tl.store(out_ptr + row * out_stride + cols, y.to(out_ptr.dtype.element_ty), mask=mask)


# kernel-lsp: workload x=bf16[M:16384,N:8192] w=bf16[N]{normal*0.1+1}
# kernel-lsp: workload x=bf16[M:100,N:768] w=bf16[N]{normal*0.1+1} weight=0.1
# kernel-lsp: reference torch.nn.functional.rms_norm(x, (x.shape[-1],), w, eps)
def rms_norm(x: torch.Tensor, w: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    """Divide each row of a matrix by its root mean square and scale it by a weight."""
    n_rows, n_cols = x.shape
    out = torch.empty_like(x)
    block = triton.next_power_of_2(max(n_cols, 1))
    # Sixteen elements a thread: two 16-byte loads each of the row and of the weight.
    num_warps = min(max(block // 512, 1), 32)
    rms_norm_kernel[(n_rows,)](
        x, w, out, x.stride(0), out.stride(0), n_cols, eps, BLOCK=block, num_warps=num_warps
    )
    return out
