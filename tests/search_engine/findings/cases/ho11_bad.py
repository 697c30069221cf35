"""A product of scaled 8-bit matrices whose tiles are cast to fp32 before the dot."""

import torch
import triton
import triton.language as tl


@triton.jit
def scaled_product(
    a_ptr, b_ptr, sa_ptr, sb_ptr, c_ptr, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    ks = tl.arange(0, BK)
    a_ptrs = a_ptr + rows[:, None] * K + ks[None, :]
    b_ptrs = b_ptr + cols[None, :] * K + ks[:, None]
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        a = tl.load(a_ptrs).to(tl.float32) * tl.load(sa_ptr + k // BK)
        b = tl.load(b_ptrs).to(tl.float32) * tl.load(sb_ptr + k // BK)
        total += tl.dot(a, b)  # expect: KL109
        a_ptrs += BK
        b_ptrs += BK
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], total.to(tl.float16))


# kernel-lsp: workload a=f8e4m3[1024,7168] b=f8e4m3[512,7168] sa=f32[112] sb=f32[112]
def product(a, b, sa, sb):
    m, k = a.shape
    n = b.shape[0]
    c = torch.empty((m, n), dtype=torch.float16, device=a.device)
    scaled_product[(m // 64, n // 64)](a, b, sa, sb, c, m, n, k, BM=64, BN=64, BK=64)
    return c
