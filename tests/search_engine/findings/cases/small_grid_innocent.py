"""The last step of a split sum and a short loop of launches: small, and over at once."""

import torch
import triton
import triton.language as tl


@triton.jit
def add_parts(part_ptr, out_ptr, n_parts, BLOCK: tl.constexpr):
    parts = tl.arange(0, BLOCK)
    x = tl.load(part_ptr + parts, mask=parts < n_parts, other=0.0)
    tl.store(out_ptr, tl.sum(x, axis=0))


# kernel-lsp: workload parts=f32[2,1024]
def total(parts):
    out = torch.empty(2, device=parts.device)
    for half in range(2):
        add_parts[(1,)](parts[half], out[half:], parts.shape[1], BLOCK=1024)
    return out
