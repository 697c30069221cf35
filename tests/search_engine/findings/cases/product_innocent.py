"""A product in large tiles: one block a processor, one conversion behind the loop, few warps."""

import torch
import triton
import triton.language as tl


@triton.jit
def product(
    a_ptr, b_ptr, c_ptr, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0)
    rows_of_tiles, cols_of_tiles = tl.cdiv(M, BM), tl.cdiv(N, BN)
    group = pid // (GROUP * cols_of_tiles)
    height = min(rows_of_tiles - group * GROUP, GROUP)
    tile_row = group * GROUP + pid % (GROUP * cols_of_tiles) % height
    tile_col = pid % (GROUP * cols_of_tiles) // height
    rows = tile_row * BM + tl.arange(0, BM)
    cols = tile_col * BN + tl.arange(0, BN)
    ks = tl.arange(0, BK)
    a_ptrs = a_ptr + rows[:, None] * K + ks[None, :]
    b_ptrs = b_ptr + ks[:, None] * N + cols[None, :]
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(0, K, BK):
        total = tl.dot(tl.load(a_ptrs), tl.load(b_ptrs), total)
        a_ptrs += BK
        b_ptrs += BK * N
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], total.to(tl.float16))


# kernel-lsp: workload a=f16[8192,8192] b=f16[8192,8192]
# kernel-lsp: reference a @ b
def matmul(a, b):
    m, k = a.shape
    n = b.shape[1]
    c = torch.empty((m, n), dtype=a.dtype, device=a.device)
    tiles = (m // 128) * (n // 256)
    product[(tiles,)](a, b, c, m, n, k, BM=128, BN=256, BK=64, GROUP=8, num_warps=8, num_stages=3)
    return c
