"""Attention of one new token, the cache in 32 parts whose results a second kernel combines."""

import torch
import triton
import triton.language as tl


@triton.jit
def decode(
    q_ptr, k_ptr, v_ptr, part_ptr, top_ptr, total_ptr, length, part_length, scale,
    D: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    head, part = tl.program_id(0), tl.program_id(1)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + head * D + d).to(tl.float32)
    top, total = -float("inf"), 0.0
    acc = tl.zeros((D,), dtype=tl.float32)
    end = tl.minimum((part + 1) * part_length, length)
    for start in range(part * part_length, end, BLOCK):
        rows = start + tl.arange(0, BLOCK)
        at = (head * length + rows[:, None]) * D + d[None, :]
        keep = rows < end
        k = tl.load(k_ptr + at, mask=keep[:, None], other=0.0).to(tl.float32)
        scores = tl.where(keep, tl.sum(q[None, :] * k, axis=1) * scale, -float("inf"))
        new_top = tl.maximum(top, tl.max(scores, axis=0))
        weights = tl.exp(scores - new_top)
        shrink = tl.exp(top - new_top)
        v = tl.load(v_ptr + at, mask=keep[:, None], other=0.0).to(tl.float32)
        acc = acc * shrink + tl.sum(weights[:, None] * v, axis=0)
        total = total * shrink + tl.sum(weights, axis=0)
        top = new_top
    slot = head * tl.num_programs(1) + part
    tl.store(part_ptr + slot * D + d, acc)
    tl.store(top_ptr + slot, top)
    tl.store(total_ptr + slot, total)


@triton.jit
def combine(part_ptr, top_ptr, total_ptr, out_ptr, PARTS: tl.constexpr, D: tl.constexpr):
    head = tl.program_id(0)
    d, parts = tl.arange(0, D), tl.arange(0, PARTS)
    top = tl.load(top_ptr + head * PARTS + parts)
    shrink = tl.exp(top - tl.max(top, axis=0))
    total = tl.sum(tl.load(total_ptr + head * PARTS + parts) * shrink, axis=0)
    acc = tl.load(part_ptr + (head * PARTS + parts[:, None]) * D + d[None, :])
    out = tl.sum(acc * shrink[:, None], axis=0) / total
    tl.store(out_ptr + head * D + d, out.to(out_ptr.dtype.element_ty))


# kernel-lsp: workload q=f16[1,32,128] k=f16[1,32,8192,128] v=f16[1,32,8192,128]
def attend(q, k, v):
    batch, heads, dim = q.shape
    length, parts = k.shape[2], 32
    out = torch.empty_like(q)
    partial = torch.empty((batch * heads, parts, dim), device=q.device)
    top = torch.empty((batch * heads, parts), device=q.device)
    total = torch.empty_like(top)
    decode[(batch * heads, parts)](
        q, k, v, partial, top, total, length, triton.cdiv(length, parts), dim**-0.5,
        D=dim, BLOCK=128,
    )  # fmt: skip
    combine[(batch * heads,)](partial, top, total, out, PARTS=parts, D=dim)
    return out
