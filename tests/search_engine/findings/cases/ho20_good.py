"""Gradient of a norm's weight: each program adds up many rows before it touches the counters."""

import torch
import triton
import triton.language as tl


@triton.jit
def weight_gradient(
    x_ptr, dy_ptr, dw_ptr, n_rows, n, ROWS: tl.constexpr, COLS: tl.constexpr
):  # fmt: skip
    cols = tl.program_id(1) * COLS + tl.arange(0, COLS)
    acc = tl.zeros((ROWS, COLS), dtype=tl.float32)
    for start in range(tl.program_id(0) * ROWS, n_rows, tl.num_programs(0) * ROWS):
        rows = start + tl.arange(0, ROWS)
        keep = (rows < n_rows)[:, None] & (cols < n)[None, :]
        at = rows[:, None] * n + cols[None, :]
        x = tl.load(x_ptr + at, mask=keep, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + at, mask=keep, other=0.0).to(tl.float32)
        acc += x * dy
    tl.atomic_add(dw_ptr + cols, tl.sum(acc, axis=0), mask=cols < n)


# kernel-lsp: workload x=bf16[65536,1024] dy=bf16[65536,1024]
def gradient(x, dy):
    n_rows, n = x.shape
    dw = torch.zeros(n, device=x.device)
    weight_gradient[(264, triton.cdiv(n, 128))](x, dy, dw, n_rows, n, ROWS=32, COLS=128)
    return dw
