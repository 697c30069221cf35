"""Kernels with accesses that can be counted by hand, traced by ``test_trace``.

Marks in comments name lines for the tests.
"""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice
from triton.tools.tensor_descriptor import TensorDescriptor

DEVICE = triton.runtime.driver.active.get_active_torch_device()
PROCESSORS = torch.cuda.get_device_properties(DEVICE).multi_processor_count


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    x = tl.load(x_ptr + at, mask=mask)  # add x
    y = tl.load(y_ptr + at, mask=mask)
    tl.store(out_ptr + at, x + y, mask=mask)  # add out


# kernel-lsp: workload x=f32[4,150528] y=f32[4,150528]
def one_block_per_image(x, y):
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        add_kernel[(1,)](x[i], y[i], out[i], x.shape[1], BLOCK=262144)  # add launch
    return out


# kernel-lsp: workload qkv=bf16[64,3,128]
def parts_of_one_tensor(qkv):
    q, k, v = qkv.unbind(1)
    add_kernel[(1,)](q[0], k[0], v[0], 128, BLOCK=128)


# kernel-lsp: workload x=f32[2000]
def asks_the_card(x):
    warmed = add_kernel.warmup(x, x, x, x.numel(), BLOCK=256, grid=(1,))
    occupancy = 65536 // (warmed.n_regs * 32 * 4)
    warmed[(PROCESSORS * occupancy,)](x, x, x, x.numel(), 256)


# kernel-lsp: workload x=f32[512]
def reads_a_float(x):
    if x.abs().max().item() > 0:
        add_kernel[(1,)](x, x, x, x.numel(), BLOCK=512)


# kernel-lsp: workload x=f32[51200000]
def reads_a_float_of_many(x):
    if x.abs().max().item() > 0:  # reads
        add_kernel[(1,)](x, x, x, x.numel(), BLOCK=512)


# kernel-lsp: workload x=f32[512]
def reads_a_result(x):
    out = torch.empty_like(x)
    add_kernel[(1,)](x, x, out, x.numel(), BLOCK=512)
    if out.sum().item() > 0:
        add_kernel[(1,)](x, x, out, x.numel(), BLOCK=512)
    return out


@triton.jit
def strided_store_kernel(x_ptr, out_ptr, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    for start in range(0, n, BLOCK):  # strided loop
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n + cols)
        tl.store(out_ptr + cols * stride + row, x)  # strided store


# kernel-lsp: workload x=f32[4096,1024]
def strided_store(x):
    out = torch.empty(x.shape[1], x.shape[0], dtype=x.dtype, device=x.device)
    strided_store_kernel[(x.shape[0],)](x, out, x.shape[0], x.shape[1], BLOCK=256)
    return out


@triton.jit
def three_pass_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    base = tl.program_id(0) * n
    top = -float("inf")
    for start in range(0, n, BLOCK):  # pass 1
        at = start + tl.arange(0, BLOCK)
        top = tl.maximum(top, tl.max(tl.load(x_ptr + base + at, mask=at < n, other=-float("inf"))))
    total = 0.0
    for start in range(0, n, BLOCK):  # pass 2
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + base + at, mask=at < n, other=-float("inf"))  # read 2
        total += tl.sum(tl.exp(x - top))
    for start in range(0, n, BLOCK):  # pass 3
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + base + at, mask=at < n)  # read 3
        tl.store(out_ptr + base + at, tl.exp(x - top) / total, mask=at < n)


# kernel-lsp: workload x=f32[12,1000]
def three_pass(x):
    out = torch.empty_like(x)
    three_pass_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=256)
    return out


@triton.jit
def shift_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at)  # no mask
    before = tl.load(x_ptr + at - 1, mask=at < n)  # before the start
    tl.store(out_ptr + at, x + before, mask=at <= n)  # off by one


# kernel-lsp: workload x=f32[1000]
def out_of_bounds(x):
    out = torch.empty_like(x)
    shift_kernel[(8,)](x, out, x.numel(), BLOCK=128)
    return out


@triton.jit
def overflow_kernel(x_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + at, 0.0, mask=at < n)


# kernel-lsp: workload x=f16[3000000000]
def overflowing_index(x):
    overflow_kernel[(triton.cdiv(x.numel(), 1024),)](x, x.numel(), BLOCK=1024)


@triton.jit
def causal_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in tl.range(0, n, BLOCK):  # causal loop
        cols = start + tl.arange(0, BLOCK)
        mask = cols[None, :] <= rows[:, None]
        x = tl.load(x_ptr + rows[:, None] * n + cols[None, :], mask=mask, other=0.0)  # causal load
        total += tl.sum(x, 1)
    tl.store(out_ptr + rows, total)


# kernel-lsp: workload x=f32[256,256]
def causal(x):
    out = torch.empty(x.shape[0], device=x.device)
    grid = lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),)  # noqa: E731
    causal_kernel[grid](x, out, x.shape[0], BLOCK=32)
    return out


@triton.jit
def histogram_kernel(x_ptr, counts_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0)
    tl.atomic_add(counts_ptr + x, 1, mask=at < n)  # count


# kernel-lsp: workload x=i32[5000]{7..7}
def one_bin(x):
    counts = torch.zeros(16, dtype=torch.int32, device=x.device)
    histogram_kernel[(5,)](x, counts, x.numel(), BLOCK=1024)
    return counts


# kernel-lsp: workload x=i32[5000]{permutation}
def own_bins(x):
    counts = torch.zeros(5000, dtype=torch.int32, device=x.device)
    histogram_kernel[(5,)](x, counts, x.numel(), BLOCK=1024)
    return counts


# kernel-lsp: workload x=i32[134217728]{0..255}
def large_indices(x):
    counts = torch.zeros(256, dtype=torch.int32, device=x.device)
    histogram_kernel[(triton.cdiv(x.numel(), 1024),)](x, counts, x.numel(), BLOCK=1024)
    return counts


# kernel-lsp: workload x=i32[4096]{0..15}
def indices_from_a_kernel(x):
    counts = torch.zeros(16, dtype=torch.int32, device=x.device)
    histogram_kernel[(4,)](x, counts, x.numel(), BLOCK=1024)
    again = torch.zeros(16, dtype=torch.int32, device=x.device)
    histogram_kernel[(1,)](counts, again, 16, BLOCK=16)  # unknown indices
    return again


@triton.jit
def loops_kernel(out_ptr, n, STEPS: tl.constexpr):
    total = 0
    for i in range(n):  # outer
        for j in tl.static_range(STEPS):  # inner
            total += i * j
    left = tl.program_id(0)
    while left > 0:  # countdown
        left -= 1
    for _ in range(n, n):  # never
        total += 1
    tl.store(out_ptr, total)


# kernel-lsp: workload out=i64[1]{0..0}
def loops(out):
    loops_kernel[(4,)](out, 5, STEPS=3)


@triton.jit
def tile_kernel(x_ptr, out_ptr, down, across, ROWS: tl.constexpr, COLS: tl.constexpr):
    rows, cols = tl.arange(0, ROWS), tl.arange(0, COLS)
    x = tl.load(x_ptr + rows[:, None] * down + cols[None, :] * across)  # tile
    tl.store(out_ptr + rows[:, None] * COLS + cols[None, :], x)


# kernel-lsp: workload x=f32[64,1024]
def rows_in_order(x):
    out = torch.empty(32, 64, device=x.device)
    tile_kernel[(1,)](x, out, x.stride(0), x.stride(1), 32, 64)


# kernel-lsp: workload x=f32[64,1024]
def columns_in_order(x):
    out = torch.empty(32, 64, device=x.device)
    tile_kernel[(1,)](x.t(), out, x.stride(1), x.stride(0), 32, 64)


# kernel-lsp: workload x=f32[2097152]
def nothing_in_order(x):
    out = torch.empty(32, 64, device=x.device)
    tile_kernel[(1,)](x, out, 16384, 256, 32, 64)


@triton.jit
def taken(pointer, at, n):
    return tl.load(pointer + at, mask=at < n)  # helper load


@triton.jit
def helper_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    total = taken(x_ptr, at, n) + taken(y_ptr, at, n)
    tl.store(y_ptr + at, total, mask=at < n)


# kernel-lsp: workload x=f16[100] y=f32[100]
def helper(x, y):
    helper_kernel[(1,)](x, y, x.numel(), BLOCK=128)


@triton.jit
def blocks_kernel(described, out_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK
    x = described.load([row, 0])  # descriptor
    out = tl.make_block_ptr(out_ptr, (N, N), (N, 1), (row, 0), (BLOCK, BLOCK), (1, 0))
    tl.store(out, x, boundary_check=(0, 1))  # block pointer


# kernel-lsp: workload x=f16[100,96]
def blocks(x):
    out = torch.empty(100, 100, dtype=torch.float16, device=x.device)
    blocks_kernel[(4,)](TensorDescriptor.from_tensor(x, [32, 32]), out, 100, BLOCK=32)
    return out


def _small_blocks(configs, named_args, **_named):
    return [config for config in configs if config.kwargs["BLOCK"] <= 512]


@triton.autotune(
    configs=[triton.Config({"BLOCK": size}) for size in (1024, 512, 256)],
    key=["n"],
    prune_configs_by={"early_config_prune": _small_blocks},
)
@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.jit
def tuned_kernel(x_ptr, n, EVEN: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if EVEN:
        tl.store(x_ptr + at, 0.0)  # even
    else:
        tl.store(x_ptr + at, 0.0, mask=at < n)  # uneven


# kernel-lsp: workload x=f32[2000]
def tuned(x):
    tuned_kernel[lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),)](x, x.numel())


@triton.jit
def segments_kernel(x_ptr, offsets_ptr, out_ptr, D: tl.constexpr):
    segment = tl.program_id(0)
    at = tl.load(offsets_ptr + segment)
    end = tl.load(offsets_ptr + segment + 1)
    total = tl.zeros((D,), tl.float32)
    while at < end:  # segment loop
        total += tl.load(x_ptr + at * D + tl.arange(0, D))
        at += 1
    tl.store(out_ptr + segment * D + tl.arange(0, D), total)


# kernel-lsp: workload x=f32[1000,64] lengths=i64[10]{100..100}
def segments(x, lengths):
    lengths = lengths[lengths > 3]
    assert lengths.max().item() == 100 and lengths.tolist() == [100] * 10
    offsets = torch.zeros(len(lengths) + 1, dtype=torch.int32, device=x.device)
    offsets[1:] = torch.cumsum(lengths, 0)
    out = torch.empty(10, 64, device=x.device)
    segments_kernel[(10,)](x, offsets, out, 64)
    return out


@triton.jit
def pointers_kernel(table_ptr, sizes_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0)
    pointer = tl.load(table_ptr + i).to(tl.pointer_type(tl.float32))
    at = tl.arange(0, BLOCK)
    tl.store(pointer + at, 0.0, mask=at <= tl.load(sizes_ptr + i))  # through the table


# kernel-lsp: workload x=f32[100] y=f32[200]
def pointer_table(x, y):
    table = torch.tensor([x.data_ptr(), y.data_ptr()], device=x.device)
    sizes = torch.tensor([x.numel(), y.numel() - 1], dtype=torch.int32, device=x.device)
    pointers_kernel[(2,)](table, sizes, BLOCK=256)


@triton.jit
def threshold_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(out_ptr + at, x, mask=(at < n) & (x > 0.0))  # above


# kernel-lsp: workload x=bf16[8000]
def threshold(x):
    out = torch.empty_like(x)
    threshold_kernel[(8,)](x, out, x.numel(), BLOCK=1024)
    return out


@triton.jit
def relu_kernel(x_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(x_ptr + at, tl.where(x > 0.0, libdevice.tanh(x), libdevice.erf(x)), mask=at < n)


# kernel-lsp: workload x=f32[8000]
def compares_values_only(x):
    relu_kernel[(8,)](x, x.numel(), BLOCK=1024)


@triton.jit
def spin_kernel(flag_ptr, out_ptr):
    while tl.atomic_cas(flag_ptr, 1, 1) != 1:  # spin
        pass
    tl.store(out_ptr, 1.0)


@triton.jit
def locked_kernel(lock_ptr, out_ptr):
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:  # lock
        pass
    tl.store(out_ptr, tl.load(out_ptr) + 1.0)
    tl.atomic_xchg(lock_ptr, 0)


@triton.jit
def counted_kernel(cells_ptr, out_ptr, BLOCK: tl.constexpr):
    while tl.atomic_cas(cells_ptr, 0, 1) == 1:
        pass
    at = tl.arange(0, BLOCK)
    total = tl.full((BLOCK,), 1.0, tl.float32)
    if tl.load(cells_ptr + 1) == 0:
        tl.atomic_xchg(cells_ptr + 1, 1)
    else:
        total += tl.load(out_ptr + at)  # not the first
    tl.store(out_ptr + at, total)
    tl.atomic_xchg(cells_ptr, 0)


# kernel-lsp: workload x=f32[64]
def accumulates_under_a_lock(x):
    counted_kernel[(6,)](torch.zeros(2, dtype=torch.int32, device=x.device), x, BLOCK=64)


@triton.jit
def mixed_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    pointers = tl.where(at < 16, x_ptr + at, y_ptr + at)
    tl.store(out_ptr + at, tl.load(pointers, mask=at < n), mask=at < n)  # mixed


# kernel-lsp: workload x=f32[48] y=f32[48]
def pointers_of_two_tensors(x, y):
    mixed_kernel[(1,)](x, y, torch.empty_like(x), 48, BLOCK=64)


@triton.jit
def handed_out_kernel(next_ptr, out_ptr, n):
    tile = tl.atomic_add(next_ptr, 1)
    while tile < n:  # handed out
        tl.store(out_ptr + tile, 1.0)
        tile = tl.atomic_add(next_ptr, 1)


# kernel-lsp: workload x=f32[100]
def synchronising(x):
    cells = torch.zeros(3, dtype=torch.int32, device=x.device)
    spin_kernel[(2,)](cells, x)
    locked_kernel[(2,)](cells[1:], x)
    handed_out_kernel[(4,)](cells[2:], x, 100)


@triton.jit
def assembly_kernel(x_ptr, out_ptr, STEERS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at)
    y = tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [x], tl.int32, True, 1)
    tl.store(out_ptr + (y if STEERS else at), y)


# kernel-lsp: workload x=i32[64]{0..63}
def assembly_of_values(x):
    assembly_kernel[(1,)](x, torch.empty_like(x), False, BLOCK=64)


# kernel-lsp: workload x=i32[64]{0..63}
def assembly_of_addresses(x):
    assembly_kernel[(1,)](x, torch.empty_like(x), True, BLOCK=64)  # assembly launch


# kernel-lsp: workload x=f32[64]
def launches_nothing(x):
    if x.numel() > 64:
        add_kernel[(1,)](x, x, x, x.numel(), BLOCK=64)
    add_kernel[(0,)](x, x, x, x.numel(), BLOCK=64)


# kernel-lsp: workload x=f32[64]
def raises(x):
    if x.numel() == 64:
        raise ValueError("no way")
    add_kernel[(1,)](x, x, x, x.numel(), BLOCK=64)


@triton.jit
def lost_name_kernel(x_ptr):
    tl.store(x_ptr, lost)  # noqa: F821


# kernel-lsp: workload x=f32[64]
def name_is_lost(x):
    lost_name_kernel[(1,)](x)


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        out = torch.empty_like(x)
        add_kernel[(4,)](x, x, out, x.numel(), BLOCK=256)  # forward launch
        return out

    @staticmethod
    def backward(ctx, gradient):
        out = torch.empty_like(gradient)
        add_kernel[(2,)](gradient, gradient, out, gradient.numel(), BLOCK=512)  # backward launch
        return out
