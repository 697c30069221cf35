"""Attention of one token with shared heads, padded to sixteen rows of one product: keys and values
are read once."""

import torch
import triton
import triton.language as tl


@triton.jit
def decode(
    q_ptr, k_ptr, v_ptr, out_ptr, length, scale,
    SHARED: tl.constexpr, ROWS: tl.constexpr, D: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    pair = tl.program_id(0)
    d, shared = tl.arange(0, D), tl.arange(0, ROWS)
    here = (pair * SHARED + shared[:, None]) * D + d[None, :]
    keep = (shared < SHARED)[:, None]
    q = tl.load(q_ptr + here, mask=keep, other=0.0)
    top = tl.full((ROWS,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((ROWS,), dtype=tl.float32)
    acc = tl.zeros((ROWS, D), dtype=tl.float32)
    for start in range(0, length, BLOCK):
        rows = start + tl.arange(0, BLOCK)
        at = (pair * length + rows[:, None]) * D + d[None, :]
        k = tl.load(k_ptr + at)
        scores = tl.dot(q, tl.trans(k)) * scale
        new_top = tl.maximum(top, tl.max(scores, axis=1))
        weights = tl.exp(scores - new_top[:, None])
        shrink = tl.exp(top - new_top)
        v = tl.load(v_ptr + at)
        acc = tl.dot(weights.to(v.dtype), v, acc * shrink[:, None])
        total = total * shrink + tl.sum(weights, axis=1)
        top = new_top
    out = (acc / total[:, None]).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + here, out, mask=keep)


# kernel-lsp: workload q=bf16[64,32,128] k=bf16[64,8,8192,128] v=bf16[64,8,8192,128]
def attend(q, k, v):
    batch, heads, dim = q.shape
    pairs, length = k.shape[1], k.shape[2]
    out = torch.empty_like(q)
    decode[(batch * pairs,)](
        q, k, v, out, length, dim**-0.5, SHARED=heads // pairs, ROWS=16, D=dim, BLOCK=128
    )
    return out
