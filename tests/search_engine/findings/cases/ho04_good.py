"""Sparse attention of one token, the chosen rows in parts that run side by side."""

import torch
import triton
import triton.language as tl


@triton.jit
def sparse_decode(
    q_ptr, kv_ptr, chosen_ptr, part_ptr, top_ptr, total_ptr, n_chosen, part_length, scale,
    HEADS: tl.constexpr, D: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    token, part = tl.program_id(0), tl.program_id(1)
    heads, d = tl.arange(0, HEADS), tl.arange(0, D)
    q = tl.load(q_ptr + (token * HEADS + heads[:, None]) * D + d[None, :])
    top = tl.full((HEADS,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((HEADS,), dtype=tl.float32)
    acc = tl.zeros((HEADS, D), dtype=tl.float32)
    end = tl.minimum((part + 1) * part_length, n_chosen)
    for start in range(part * part_length, end, BLOCK):
        slots = start + tl.arange(0, BLOCK)
        rows = tl.load(chosen_ptr + token * n_chosen + slots, mask=slots < end, other=0)
        kv = tl.load(kv_ptr + rows[:, None] * D + d[None, :])
        scores = tl.dot(q, tl.trans(kv)) * scale
        scores = tl.where((slots < end)[None, :], scores, -float("inf"))
        new_top = tl.maximum(top, tl.max(scores, axis=1))
        weights = tl.exp(scores - new_top[:, None])
        shrink = tl.exp(top - new_top)
        acc = tl.dot(weights.to(kv.dtype), kv, acc * shrink[:, None])
        total = total * shrink + tl.sum(weights, axis=1)
        top = new_top
    slot = (token * tl.num_programs(1) + part) * HEADS + heads
    tl.store(part_ptr + slot[:, None] * D + d[None, :], acc)
    tl.store(top_ptr + slot, top)
    tl.store(total_ptr + slot, total)


@triton.jit
def combine(
    part_ptr, top_ptr, total_ptr, out_ptr,
    PARTS: tl.constexpr, HEADS: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    token, head = tl.program_id(0), tl.program_id(1)
    d, parts = tl.arange(0, D), tl.arange(0, PARTS)
    slot = (token * PARTS + parts) * HEADS + head
    top = tl.load(top_ptr + slot)
    shrink = tl.exp(top - tl.max(top, axis=0))
    total = tl.sum(tl.load(total_ptr + slot) * shrink, axis=0)
    acc = tl.load(part_ptr + slot[:, None] * D + d[None, :])
    out = tl.sum(acc * shrink[:, None], axis=0) / total
    tl.store(out_ptr + (token * HEADS + head) * D + d, out.to(out_ptr.dtype.element_ty))


# kernel-lsp: workload q=bf16[1,16,512] kv=bf16[65536,512] chosen=i32[1,2048]{0..65535}
def attend(q, kv, chosen):
    tokens, heads, dim = q.shape
    parts, count = 32, chosen.shape[1]
    out = torch.empty_like(q)
    partial = torch.empty((tokens, parts, heads, dim), device=q.device)
    top = torch.empty((tokens, parts, heads), device=q.device)
    total = torch.empty_like(top)
    sparse_decode[(tokens, parts)](
        q, kv, chosen, partial, top, total, count, triton.cdiv(count, parts), dim**-0.5,
        HEADS=heads, D=dim, BLOCK=32,
    )  # fmt: skip
    combine[(tokens, heads)](partial, top, total, out, PARTS=parts, HEADS=heads, D=dim)
    return out
