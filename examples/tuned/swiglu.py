"""SwiGLU activation, silu(gate) * up, with 16-byte accesses and several of them in flight."""

import torch
import triton
import triton.language as tl


@triton.jit
def swiglu_kernel(gate_ptr, up_ptr, out_ptr, n_elements, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n_elements
    gate = tl.load(gate_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    up = tl.load(up_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    y = gate * tl.sigmoid(gate) * up
    tl.store(out_ptr + offsets, y.to(out_ptr.dtype.element_ty), mask=mask)


# kernel-lsp: workload gate=bf16[M:16384,N:11008] up=bf16[M,N]
# kernel-lsp: workload gate=bf16[M:7,N:1000] up=bf16[M,N] weight=0.1
# kernel-lsp: reference torch.nn.functional.silu(gate) * up
def swiglu(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """silu(gate) * up of two contiguous tensors of one shape."""
    out = torch.empty_like(gate)
    n_elements = out.numel()
    grid = (triton.cdiv(n_elements, 4096),)
    swiglu_kernel[grid](gate, up, out, n_elements, BLOCK=4096, num_warps=8)
    return out
