"""A product of fp32 matrices with bias and ReLU, in full precision and small tiles."""

import torch
import triton
import triton.language as tl


@triton.jit
def linear_relu(
    a_ptr, b_ptr, bias_ptr, c_ptr, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        ks = start + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * K + ks[None, :])
        b = tl.load(b_ptr + ks[:, None] * N + cols[None, :])
        total += tl.dot(a, b, allow_tf32=False)  # expect: KL109
    total = tl.maximum(total + tl.load(bias_ptr + cols)[None, :], 0.0)
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], total)


# kernel-lsp: workload a=f32[1024,1024] b=f32[1024,1024] bias=f32[1024]
# kernel-lsp: reference torch.relu(a @ b + bias)
def fused(a, b, bias):
    m, k = a.shape
    n = b.shape[1]
    c = torch.empty((m, n), dtype=a.dtype, device=a.device)
    linear_relu[(m // 64, n // 64)](a, b, bias, c, m, n, k, BM=64, BN=64, BK=32)
    return c
