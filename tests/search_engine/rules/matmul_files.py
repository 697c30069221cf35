"""Matrix products as different people write them, for the tests of the rules about tiles."""

from __future__ import annotations

from rule_runs import EXAMPLES, HEADER, tensor

OPERANDS = (tensor("a", "bf16", 4096, 4096), tensor("b", "bf16", 4096, 4096))
NARROW = (tensor("a", "bf16", 64, 4096), tensor("b", "bf16", 4096, 128))

# Sizes by keyword, ids with names, contiguous operands.
SQUARE = (
    HEADER
    + """@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i = tl.program_id(0)
    j = tl.program_id(1)
    rows = i * BM + tl.arange(0, BM)[:, None]
    cols = j * BN + tl.arange(0, BN)[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        left = start + tl.arange(0, BK)[None, :]
        right = start + tl.arange(0, BK)[:, None]
        a = tl.load(a_ptr + rows * K + left, mask=(rows < M) & (left < K), other=0.0)
        b = tl.load(b_ptr + right * N + cols, mask=(right < K) & (cols < N), other=0.0)
        acc += tl.dot(a, b)
    tl.store(c_ptr + rows * N + cols, acc, mask=(rows < M) & (cols < N))


def matmul(a, b):
    M, K = a.shape
    N = b.shape[1]
    c = torch.empty((M, N), device=a.device, dtype=a.dtype)
    kernel[(triton.cdiv(M, 32), triton.cdiv(N, 32))](a, b, c, M, N, K, BM=32, BN=32, BK=32)
    return c
"""
)

# A flat grid, wrapped rows and columns, advancing pointers, constants as locals of the entry.
FLAT = (
    HEADER
    + """@triton.jit
def product(
    x_ptr, y_ptr, z_ptr,
    m, n, k,
    sxm, sxk, syk, syn, szm, szn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    pid = tl.program_id(axis=0)
    num_n = tl.cdiv(n, BLOCK_N)
    pid_m = pid // num_n
    pid_n = pid % num_n
    offs_m = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M)) % m
    offs_n = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N)) % n
    offs_k = tl.arange(0, BLOCK_K)
    x_ptrs = x_ptr + offs_m[:, None] * sxm + offs_k[None, :] * sxk
    y_ptrs = y_ptr + offs_k[:, None] * syk + offs_n[None, :] * syn
    total = tl.zeros([BLOCK_M, BLOCK_N], dtype=tl.float32)
    for step in range(0, tl.cdiv(k, BLOCK_K)):
        x = tl.load(x_ptrs, mask=offs_k[None, :] < k - step * BLOCK_K, other=0.0)
        y = tl.load(y_ptrs, mask=offs_k[:, None] < k - step * BLOCK_K, other=0.0)
        total = tl.dot(x, y, total)
        x_ptrs += BLOCK_K * sxk
        y_ptrs += BLOCK_K * syk
    out_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    out_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    z_ptrs = z_ptr + out_m[:, None] * szm + out_n[None, :] * szn
    tl.store(z_ptrs, total, mask=(out_m[:, None] < m) & (out_n[None, :] < n))


def f(a, b):
    m, k = a.shape
    n = b.size(1)
    z = a.new_empty((m, n))
    BLOCK_M = 32
    BLOCK_N = 64
    BLOCK_K = 16
    grid = (triton.cdiv(m, BLOCK_M) * triton.cdiv(n, BLOCK_N),)
    product[grid](
        a, b, z, m, n, k,
        a.stride(0), a.stride(1), b.stride(0), b.stride(1), z.stride(0), z.stride(1),
        BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K, num_warps=4,
    )
    return z
"""
)

# One size for all three, a lambda for the grid, columns on the first axis.
ONE_SIZE = SQUARE.replace(
    "BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr", "SIZE: tl.constexpr"
)
for _name in ("BM", "BN", "BK"):
    ONE_SIZE = ONE_SIZE.replace(f"{_name}=32, ", "").replace(f"{_name}=32", "SIZE=32")
    ONE_SIZE = ONE_SIZE.replace(_name, "SIZE")
ONE_SIZE = ONE_SIZE.replace(
    "kernel[(triton.cdiv(M, 32), triton.cdiv(N, 32))]",
    'kernel[lambda meta: (triton.cdiv(M, meta["SIZE"]), triton.cdiv(N, meta["SIZE"]))]',
)

FILES = {
    "named ids": (SQUARE, "matmul"),
    "flat": (FLAT, "f"),
    "one size": (ONE_SIZE, "matmul"),
    "shipped": ((EXAMPLES / "matmul.py").read_text(), "matmul"),
}
