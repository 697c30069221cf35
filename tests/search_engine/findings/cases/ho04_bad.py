"""Sparse attention of one token: one program gathers 2,048 chosen rows for all its heads."""

import torch
import triton
import triton.language as tl


@triton.jit
def sparse_decode(
    q_ptr, kv_ptr, chosen_ptr, out_ptr, n_chosen, scale,
    HEADS: tl.constexpr, D: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    token = tl.program_id(0)
    heads, d = tl.program_id(1) * HEADS + tl.arange(0, HEADS), tl.arange(0, D)
    q = tl.load(q_ptr + (token * HEADS + heads[:, None]) * D + d[None, :])
    top = tl.full((HEADS,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((HEADS,), dtype=tl.float32)
    acc = tl.zeros((HEADS, D), dtype=tl.float32)
    for start in range(0, n_chosen, BLOCK):
        slots = start + tl.arange(0, BLOCK)
        rows = tl.load(chosen_ptr + token * n_chosen + slots, mask=slots < n_chosen, other=0)
        kv = tl.load(kv_ptr + rows[:, None] * D + d[None, :])
        scores = tl.dot(q, tl.trans(kv)) * scale
        scores = tl.where((slots < n_chosen)[None, :], scores, -float("inf"))
        new_top = tl.maximum(top, tl.max(scores, axis=1))
        weights = tl.exp(scores - new_top[:, None])
        shrink = tl.exp(top - new_top)
        acc = tl.dot(weights.to(kv.dtype), kv, acc * shrink[:, None])
        total = total * shrink + tl.sum(weights, axis=1)
        top = new_top
    out = acc / total[:, None]
    at = (token * HEADS + heads[:, None]) * D + d[None, :]
    tl.store(out_ptr + at, out.to(out_ptr.dtype.element_ty))


# kernel-lsp: workload q=bf16[1,16,512] kv=bf16[65536,512] chosen=i32[1,2048]{0..65535}
def attend(q, kv, chosen):
    tokens, heads, dim = q.shape
    out = torch.empty_like(q)
    grid = (tokens, heads // 16)
    sparse_decode[grid](  # expect: KL201
        q, kv, chosen, out, chosen.shape[1], dim**-0.5, HEADS=16, D=dim, BLOCK=32
    )
    return out
