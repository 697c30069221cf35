"""Attention of one token with shared heads: the loop over query heads is outside, so each of them
reads keys and values again."""

import torch
import triton
import triton.language as tl


@triton.jit
def decode(
    q_ptr, k_ptr, v_ptr, out_ptr, length, scale,
    SHARED: tl.constexpr, D: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    pair = tl.program_id(0)
    d = tl.arange(0, D)
    for shared in range(SHARED):
        head = pair * SHARED + shared
        q = tl.load(q_ptr + head * D + d).to(tl.float32)
        top, total = -float("inf"), 0.0
        acc = tl.zeros((D,), dtype=tl.float32)
        for start in range(0, length, BLOCK):
            rows = start + tl.arange(0, BLOCK)
            at = (pair * length + rows[:, None]) * D + d[None, :]
            k = tl.load(k_ptr + at).to(tl.float32)  # expect: KL205
            scores = tl.sum(q[None, :] * k, axis=1) * scale
            new_top = tl.maximum(top, tl.max(scores, axis=0))
            weights = tl.exp(scores - new_top)
            shrink = tl.exp(top - new_top)
            v = tl.load(v_ptr + at).to(tl.float32)  # expect: KL205
            acc = acc * shrink + tl.sum(weights[:, None] * v, axis=0)
            total = total * shrink + tl.sum(weights, axis=0)
            top = new_top
        tl.store(out_ptr + head * D + d, (acc / total).to(out_ptr.dtype.element_ty))


# kernel-lsp: workload q=bf16[64,32,128] k=bf16[64,8,8192,128] v=bf16[64,8,8192,128]
def attend(q, k, v):
    batch, heads, dim = q.shape
    pairs, length = k.shape[1], k.shape[2]
    out = torch.empty_like(q)
    decode[(batch * pairs,)](
        q, k, v, out, length, dim**-0.5, SHARED=heads // pairs, D=dim, BLOCK=256, num_warps=8
    )
    return out
