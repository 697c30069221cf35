"""Data read several times from memory is named; what a cache serves is not."""

from __future__ import annotations

from launch_subjects import (
    HEADER,
    ROW_KERNEL,
    code,
    dot,
    line_of,
    load,
    make_subject,
    run,
    trace,
)

from search_engine.domain.access import LoopTrace
from search_engine.domain.finding import Finding
from search_engine.domain.kernel import OperationKind
from search_engine.findings.repeated_read import RepeatedRead

TEXT = ROW_KERNEL.replace("f32[64,65536]", "f32[8192,32768]")
LAUNCH = line_of(TEXT, "row_kernel[")
FIRST, SECOND = line_of(TEXT, "x = tl.load"), line_of(TEXT, "y = tl.load")
STORE = line_of(TEXT, "tl.store")

MATMUL = (
    HEADER
    + """@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        a = tl.load(a_ptr + k)
        b = tl.load(b_ptr + k)
        acc += tl.dot(a, b)
    tl.store(c_ptr, acc)


def matmul(a, b, c):
    matmul_kernel[(16384,)](a, b, c, 4096, BM=32, BN=32, BK=32)
"""
)


def two_passes(rows: int, n: int) -> list[Finding]:
    """Two reads and a write of a matrix of floats, a row a program."""
    lanes, tensor_bytes = 24 * n, 4 * rows * n
    accesses = (
        load(FIRST, executions=24 * n // 1024, lanes=lanes, tensor_bytes=tensor_bytes),
        load(SECOND, executions=24 * n // 1024, lanes=lanes, tensor_bytes=tensor_bytes),
        load(STORE, "out_ptr", executions=24 * n // 1024, lanes=lanes,
             tensor_bytes=tensor_bytes, kind=OperationKind.STORE),
    )  # fmt: skip
    grid = (rows, 1, 1)
    traces = (trace(LAUNCH, grid, *accesses),)
    return run(RepeatedRead(), make_subject(TEXT, traces, (code(LAUNCH, grid),)))


def tiles(size: int, grid: int) -> list[Finding]:
    """A product of two 4096 x 4096 matrices of bf16 in square tiles."""
    line, steps = line_of(MATMUL, "matmul_kernel["), 4096 // 32
    lanes, tensor_bytes = 24 * steps * size * 32, 2 * 4096 * 4096
    accesses = [
        load(line_of(MATMUL, f"{name} = tl.load"), f"{name}_ptr", executions=24 * steps,
             lanes=lanes, tensor_bytes=tensor_bytes, element_bytes=2,
             distinct=2 * 16 * 4096 * size)
        for name in "ab"
    ]  # fmt: skip
    loops = (LoopTrace(line_of(MATMUL, "for k"), float(steps), steps),)
    product = dot(line_of(MATMUL, "tl.dot"), (size, size, 32))
    shape = (grid, 1, 1)
    subject = make_subject(
        MATMUL,
        (trace(line, shape, *accesses, loops=loops),),
        (code(line, shape, dots=(product,), registers=128),),
    )
    return run(RepeatedRead(), subject)


def test_a_row_read_in_two_loops_is_named_at_the_second() -> None:
    (found,) = two_passes(8192, 32_768)
    assert found.message == "x_ptr is read 2 times (2.15 GB of 1.07 GB)"
    assert found.line == SECOND
    assert found.related[0].line == FIRST
    assert found.rule == "one-block-per-row"
    assert 0.1 < found.cost < 0.4


def test_a_matrix_that_stays_in_the_cache_is_silent() -> None:
    assert two_passes(2048, 2048) == []


def test_rows_that_stay_in_the_cache_until_the_second_pass_are_silent() -> None:
    assert two_passes(1_000_000, 1024) == []


def test_small_tiles_read_their_operands_too_often() -> None:
    found = tiles(32, 128 * 128)
    assert [item.message for item in found] == [
        "a_ptr is read 128 times (4.29 GB of 33.6 MB)",
        "b_ptr is read 128 times (4.29 GB of 33.6 MB)",
    ]
    assert min(item.cost for item in found) > 0.3


def test_a_product_with_few_tiles_cannot_have_larger_ones() -> None:
    assert tiles(32, 256) == []


def test_a_good_product_is_silent() -> None:
    assert tiles(256, 16 * 16) == []


def test_a_weight_that_every_row_reads_is_silent() -> None:
    n, rows = 8192, 16_384
    lanes = 24 * n
    accesses = (
        load(FIRST, executions=24 * 8, lanes=lanes, tensor_bytes=4 * rows * n),
        load(SECOND, "w_ptr", executions=24 * 8, lanes=lanes, distinct=4 * n, tensor_bytes=4 * n),
        load(STORE, "out_ptr", executions=24 * 8, lanes=lanes, tensor_bytes=4 * rows * n,
             kind=OperationKind.STORE),
    )  # fmt: skip
    grid = (rows, 1, 1)
    subject = make_subject(TEXT, (trace(LAUNCH, grid, *accesses),), (code(LAUNCH, grid),))
    assert run(RepeatedRead(), subject) == []
