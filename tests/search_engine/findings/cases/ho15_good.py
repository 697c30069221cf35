"""Causal attention whose loop ends at the diagonal."""

import torch
import triton
import triton.language as tl


@triton.jit
def attention(
    q_ptr, k_ptr, v_ptr, out_ptr, length, scale,
    D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    base = tl.program_id(1) * length * D
    rows, d = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    q = tl.load(q_ptr + base + rows[:, None] * D + d[None, :])
    top = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, D), dtype=tl.float32)
    for start in range(0, (tl.program_id(0) + 1) * BM, BN):
        cols = start + tl.arange(0, BN)
        k = tl.load(k_ptr + base + cols[:, None] * D + d[None, :])
        scores = tl.dot(q, tl.trans(k)) * scale
        scores = tl.where(rows[:, None] >= cols[None, :], scores, -float("inf"))
        new_top = tl.maximum(top, tl.max(scores, axis=1))
        weights = tl.exp(scores - new_top[:, None])
        shrink = tl.exp(top - new_top)
        v = tl.load(v_ptr + base + cols[:, None] * D + d[None, :])
        acc = tl.dot(weights.to(v.dtype), v, acc * shrink[:, None])
        total = total * shrink + tl.sum(weights, axis=1)
        top = new_top
    out = (acc / total[:, None]).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + base + rows[:, None] * D + d[None, :], out)


# kernel-lsp: workload q=bf16[2,16,4096,128] k=bf16[2,16,4096,128] v=bf16[2,16,4096,128]
def attend(q, k, v):
    batch, heads, length, dim = q.shape
    out = torch.empty_like(q)
    grid = (triton.cdiv(length, 128), batch * heads)
    attention[grid](q, k, v, out, length, dim**-0.5, D=dim, BM=128, BN=64, num_warps=8)
    return out
