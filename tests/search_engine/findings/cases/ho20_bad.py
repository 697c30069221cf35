"""Gradient of a norm's weight: every row adds its products to the same counters."""

import torch
import triton
import triton.language as tl


@triton.jit
def weight_gradient(x_ptr, dy_ptr, dw_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    keep = cols < n
    x = tl.load(x_ptr + row * n + cols, mask=keep, other=0.0).to(tl.float32)
    dy = tl.load(dy_ptr + row * n + cols, mask=keep, other=0.0).to(tl.float32)
    tl.atomic_add(dw_ptr + cols, x * dy, mask=keep)  # expect: KL208


# kernel-lsp: workload x=bf16[65536,1024] dy=bf16[65536,1024]
def gradient(x, dy):
    dw = torch.zeros(x.shape[1], device=x.device)
    weight_gradient[(x.shape[0],)](x, dy, dw, x.shape[1], BLOCK=1024)
    return dw
