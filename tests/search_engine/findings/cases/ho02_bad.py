"""Quantisation of each token to 8 bits, 32 tokens a program: four programs for 128 tokens."""

import torch
import triton
import triton.language as tl


@triton.jit
def quantise(x_ptr, out_ptr, scale_ptr, n_tokens, n, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    first = tl.program_id(0) * ROWS
    for row in range(first, min(first + ROWS, n_tokens)):
        x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=0.0).to(tl.float32)
        scale = tl.maximum(tl.max(tl.abs(x), axis=0), 1e-10) / 448.0
        tl.store(out_ptr + row * n + cols, (x / scale).to(tl.float8e4nv), mask=cols < n)
        tl.store(scale_ptr + row, scale)


# kernel-lsp: workload x=bf16[128,8192]
def quantised(x):
    n_tokens, n = x.shape
    out = torch.empty_like(x, dtype=torch.float8_e4m3fn)
    scales = torch.empty(n_tokens, device=x.device)
    grid = (triton.cdiv(n_tokens, 32),)
    quantise[grid](x, out, scales, n_tokens, n, ROWS=32, BLOCK=8192)  # expect: KL201
    return out, scales
