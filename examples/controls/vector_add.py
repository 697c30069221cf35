"""Vector addition as it should be: wide accesses, several in flight, nothing to gain."""

import torch
import triton
import triton.language as tl


@triton.jit
def vector_add_kernel(x_ptr, y_ptr, out_ptr, n_elements, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


# kernel-lsp: workload x=f32[134217728] y=f32[134217728]
# kernel-lsp: workload x=f32[100003] y=f32[100003] weight=0.1
# kernel-lsp: reference x + y
def vector_add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The sum of two contiguous tensors of one shape."""
    out = torch.empty_like(x)
    n_elements = out.numel()
    grid = (triton.cdiv(n_elements, 2048),)
    vector_add_kernel[grid](x, y, out, n_elements, BLOCK=2048, num_warps=8)
    return out
