"""A transposed copy in tiles: the compiler arranges the exchange without conflicts."""

import torch
import triton
import triton.language as tl


@triton.jit
def transposed(x_ptr, y_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    tile = tl.load(x_ptr + rows[:, None] * N + cols[None, :])
    tl.store(y_ptr + cols[:, None] * M + rows[None, :], tl.trans(tile))


# kernel-lsp: workload x=f16[8192,8192]
# kernel-lsp: reference x.T.contiguous()
def transpose(x):
    m, n = x.shape
    y = torch.empty((n, m), dtype=x.dtype, device=x.device)
    transposed[(m // 128, n // 128)](x, y, m, n, BM=128, BN=128, num_warps=8)
    return y
