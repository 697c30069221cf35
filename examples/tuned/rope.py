"""Rotary position embedding, a block of heads per program, sharing the angles of the position."""

# ruff: noqa: E501

import torch
import triton
import triton.language as tl


@triton.jit
def rope_kernel(
    x_ptr,
    cos_ptr,
    sin_ptr,
    out_ptr,
    seq_len,
    n_heads,
    half,
    HEADS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    token = tl.program_id(0)
    pos = token % seq_len
    heads = tl.program_id(1) * HEADS + tl.arange(0, HEADS)
    cols = tl.arange(0, BLOCK)
    angles = pos * half + cols
    cos = tl.load(cos_ptr + angles, mask=cols < half, other=0.0).to(tl.float32)[None, :]
    sin = tl.load(sin_ptr + angles, mask=cols < half, other=0.0).to(tl.float32)[None, :]

    start = token.to(tl.int64) * n_heads * half * 2
    offsets = heads[:, None] * half * 2 + cols[None, :]
    mask = (heads[:, None] < n_heads) & (cols[None, :] < half)
    first = tl.load(x_ptr + start + offsets, mask=mask, other=0.0).to(tl.float32)
    second = tl.load(x_ptr + start + half + offsets, mask=mask, other=0.0).to(tl.float32)

    dtype = out_ptr.dtype.element_ty
    tl.store(out_ptr + start + offsets, (first * cos - second * sin).to(dtype), mask=mask)
    tl.store(out_ptr + start + half + offsets, (second * cos + first * sin).to(dtype), mask=mask)


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
    block = triton.next_power_of_2(half)
    # Two tiles of 2048 elements: 16 of each a thread at four warps.
    heads = min(triton.next_power_of_2(n_heads), max(2048 // block, 1))
    grid = (batch * seq_len, triton.cdiv(n_heads, heads))
    rope_kernel[grid](x, cos, sin, out, seq_len, n_heads, half, HEADS=heads, BLOCK=block)
    return out
