"""A product of which the tiles are a few more than the device holds at once."""

import torch
import triton
import triton.language as tl


@triton.jit
def matmul(
    a_ptr, b_ptr, c_ptr, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    tiles = tl.cdiv(N, BN)
    rows = tl.program_id(0) // tiles * BM + tl.arange(0, BM)
    cols = tl.program_id(0) % tiles * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        inner = start + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * K + inner[None, :])
        b = tl.load(b_ptr + inner[:, None] * N + cols[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], acc.to(c_ptr.dtype.element_ty))


# kernel-lsp: workload a=bf16[1152,4096] b=bf16[4096,4096]
def product(a, b):
    (M, K), N = a.shape, b.shape[1]
    c = torch.empty((M, N), device=a.device, dtype=a.dtype)
    grid = (M // 128 * (N // 256),)
    matmul[grid](  # expect: KL204
        a, b, c, M, N, K, BM=128, BN=256, BK=64, num_warps=8, num_stages=3
    )
    return c
