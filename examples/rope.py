"""Rotary position embedding, one program for each (batch, position, head)."""

# ruff: noqa: E501

import torch
import triton
import triton.language as tl


@triton.jit
def rope_kernel(x_ptr, cos_ptr, sin_ptr, out_ptr, seq_len, n_heads, half, BLOCK: tl.constexpr):
    head = tl.program_id(0)
    pos = tl.program_id(1)
    batch = tl.program_id(2)
    start = ((batch * seq_len + pos) * n_heads + head) * half * 2
    cols = tl.arange(0, BLOCK)
    mask = cols < half

    cos = tl.load(cos_ptr + pos * half + cols, mask=mask, other=0.0).to(tl.float32)
    sin = tl.load(sin_ptr + pos * half + cols, mask=mask, other=0.0).to(tl.float32)
    first = tl.load(x_ptr + start + cols, mask=mask, other=0.0).to(tl.float32)
    second = tl.load(x_ptr + start + half + cols, mask=mask, other=0.0).to(tl.float32)

    dtype = out_ptr.dtype.element_ty
    tl.store(out_ptr + start + cols, (first * cos - second * sin).to(dtype), mask=mask)
    tl.store(out_ptr + start + half + cols, (second * cos + first * sin).to(dtype), mask=mask)


# kernel-lsp: workload x=bf16[8,S:4096,32,128] cos=f32[S,64] sin=f32[S,64]
# kernel-lsp: workload x=bf16[2,S:100,5,96] cos=f32[S,48] sin=f32[S,48] weight=0.1
# kernel-lsp: reference torch.cat([x.chunk(2, -1)[0] * cos[:, None] - x.chunk(2, -1)[1] * sin[:, None], x.chunk(2, -1)[1] * cos[:, None] + x.chunk(2, -1)[0] * sin[:, None]], -1)
def rope(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Rotate x[batch, position, head, dim] by the angles of its position.

    ``cos`` and ``sin`` are [position, dim / 2]; the two halves of ``dim`` form the pairs.
    """
    batch, seq_len, n_heads, dim = x.shape
    half = dim // 2
    out = torch.empty_like(x)
    grid = (n_heads, seq_len, batch)
    rope_kernel[grid](x, cos, sin, out, seq_len, n_heads, half, BLOCK=triton.next_power_of_2(half))
    return out
