"""Tiles for strided kernels: what is rewritten, that it stays right, what is left alone."""

from pathlib import Path

import pytest
from rule_runs import (
    EXAMPLES,
    HEADER,
    RunCase,
    compile_native,
    interpret,
    offered,
    rewritten,
    tensor,
)

from search_engine.domain.candidate import Numerics
from search_engine.rules.tile_strided_access import TileStridedAccess

RULE = TileStridedAccess()
WIDE = tensor("x", "f32", 16384, 8192)
TALL = tensor("a", "f32", 4096, 2048)
SIZES = ("1, 1", "97, 61", "130, 67", "3, 200")


def source(kernel: str, entry: str) -> str:
    """A file with one kernel ``k`` and its entry."""
    return f"{HEADER}@triton.jit\n{kernel}\n\n\n{entry}\n"


# One block covers the row; grid and size are locals of the entry, strides are passed.
WHOLE_ROW = source(
    """def k(src, dst, s_row, s_col, d_row, d_col, width, SIZE: tl.constexpr):
    r = tl.program_id(axis=0)
    c = tl.arange(0, SIZE)
    value = tl.load(src + r * s_row + c * s_col, mask=c < width, other=0.0)
    tl.store(dst + c * d_row + r * d_col, value * 2, mask=c < width)""",
    """def f(a):
    height, width = a.shape
    dst = a.new_empty((width, height))
    SIZE = triton.next_power_of_2(width)
    grid = (height,)
    k[grid](
        a,
        dst,
        a.stride(0),
        a.stride(1),
        dst.stride(0),
        dst.stride(1),
        width,
        SIZE=SIZE,
    )
    return dst""",
)

# The grid walks the blocks of a row; the row is the second axis and its id stands in expressions.
GRID_BLOCKS = source(
    """def k(src, dst, rows, cols, B: tl.constexpr = 256):
    offs = tl.program_id(0) * B + tl.arange(0, B)
    base = src + tl.program_id(1) * cols
    inside = offs < cols
    tl.store(dst + offs * rows + tl.program_id(1), tl.load(base + offs, inside), mask=inside)""",
    """def f(a):
    rows, cols = a.shape
    dst = torch.empty(cols, rows, dtype=a.dtype, device=a.device)
    k[(triton.cdiv(cols, 256), rows)](a, dst, rows, cols)
    return dst""",
)

# Loop over block numbers, 64-bit offsets, a comment inside the loop.
BLOCK_NUMBERS = source(
    """def k(src, dst, rows, cols, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    for i in range(tl.cdiv(cols, B)):
        # one block of the row
        offs = i * B + tl.arange(0, B)
        value = tl.load(src + row * cols + offs, mask=offs < cols)
        tl.store(
            dst + offs * rows + row,
            value,
            mask=offs < cols,
        )""",
    """def f(a):
    rows, cols = a.shape
    dst = torch.empty((cols, rows), dtype=a.dtype, device=a.device)
    k[lambda meta: (rows,)](a, dst, rows, cols, B=512)
    return dst""",
)

# A scalar walk down the column, without lanes at all.
SCALAR_WALK = source(
    """def k(a_ptr, out_ptr, n, m):
    column = tl.program_id(0)
    acc = 0.0
    for row in range(n):
        acc += tl.load(a_ptr + row * m + column)
    tl.store(out_ptr + column, acc)""",
    """def f(a):
    n, m = a.shape
    out = torch.empty(m, dtype=a.dtype, device=a.device)
    k[(m,)](a, out, n, m)
    return out""",
)

# Two passes and a vector accumulator; the second value is derived from the first.
MEAN_AND_MAXIMUM = source(
    """def k(a_ptr, out_ptr, n, m, step, BLOCK: tl.constexpr):
    column = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    acc = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, n, BLOCK):
        rows = start + lanes
        acc += tl.load(a_ptr + rows * step + column, mask=rows < n, other=0.0)
    mean = tl.sum(acc, axis=0) / n
    largest = -float("inf")
    for start in range(0, n, BLOCK):
        rows = start + lanes
        v = tl.load(a_ptr + rows * step + column, mask=rows < n, other=-float("inf"))
        largest = tl.maximum(largest, tl.max(v - mean, 0))
    tl.store(out_ptr + column, largest)""",
    """BLOCK = 256


def f(a):
    n, m = a.shape
    out = torch.empty((m,), device=a.device)
    k[(m,)](a, out, n, m, a.stride(0), BLOCK)
    return out""",
)

VARIANTS = {
    "whole row": (WHOLE_ROW, "x[0].T * 2"),
    "grid of blocks": (GRID_BLOCKS, "x[0].T"),
    "block numbers": (BLOCK_NUMBERS, "x[0].T"),
    "scalar walk": (SCALAR_WALK, "x[0].sum(0)"),
    "two passes": (MEAN_AND_MAXIMUM, "(x[0] - x[0].mean(0)).max(0).values"),
}
SHIPPED = {"transpose": "x[0].T", "column_sum": "x[0].sum(0)"}


def cases(sizes: tuple[str, ...], *, baseline: bool) -> list[RunCase]:
    """Every variant and example at every size, rewritten or as found."""
    found: list[RunCase] = []
    for name, (text, expected) in VARIANTS.items():
        new = text if baseline else rewritten(RULE, text, TALL)
        found += [case(name, new, "f", size, expected) for size in sizes]
    for name, expected in SHIPPED.items():
        text = (EXAMPLES / f"{name}.py").read_text()
        new = text if baseline else rewritten(RULE, text, WIDE)
        found += [case(name, new, name, size, expected) for size in sizes]
    return found


def case(name: str, text: str, entry: str, size: str, expected: str) -> RunCase:
    argument = f"torch.randn({size}, generator=g)"
    return RunCase(f"{name} {size}", text, entry, (argument,), expected)


def test_results_stay_right_at_odd_sizes(tmp_path: Path):
    assert interpret(cases(SIZES, baseline=False), tmp_path) == {}


def test_the_baselines_of_these_tests_are_right(tmp_path: Path):
    assert interpret(cases(("33, 20",), baseline=True), tmp_path) == {}


def test_results_compile_for_hopper(tmp_path: Path):
    assert compile_native(cases(("256, 128",), baseline=False), tmp_path) == {}


def test_moving_elements_is_exact_and_reducing_is_not():
    (moves,) = offered(RULE, WHOLE_ROW, TALL)
    (reduces,) = offered(RULE, MEAN_AND_MAXIMUM, TALL)
    assert moves.numerics is Numerics.EXACT
    assert reduces.numerics is Numerics.REASSOCIATES


def test_comments_in_the_kernel_stay():
    assert "# one block of the row" in rewritten(RULE, BLOCK_NUMBERS, TALL)


def test_blocks_never_grow():
    (rewrite,) = offered(RULE, BLOCK_NUMBERS.replace("B=512", "B=32"), TALL)
    sizes = {a.value for c in rewrite.configurations for a in c if a.name == "B"}
    assert sizes == {"32"}


@pytest.mark.parametrize(
    ("text", "argument"),
    [
        pytest.param((EXAMPLES / "row_sum.py").read_text(), WIDE, id="contiguous rows"),
        pytest.param((EXAMPLES / "softmax.py").read_text(), WIDE, id="softmax"),
        pytest.param(
            SCALAR_WALK.replace(
                "    acc = 0.0", "    if column > 5:\n        return\n    acc = 0.0"
            ),
            TALL,
            id="early return",
        ),
        pytest.param(
            MEAN_AND_MAXIMUM.replace("tl.max(v - mean, 0)", "tl.max(tl.cumsum(v - mean, 0), 0)"),
            TALL,
            id="a scan",
        ),
        pytest.param(
            WHOLE_ROW.replace("triton.next_power_of_2(width)", "1024"), TALL, id="truncates rows"
        ),
        pytest.param(
            BLOCK_NUMBERS.replace("range(tl.cdiv(cols, B))", "range(7)"), TALL, id="unknown walk"
        ),
        pytest.param(
            SCALAR_WALK.replace("@triton.jit", "@triton.autotune([], key=[])\n@triton.jit"),
            TALL,
            id="autotuned",
        ),
    ],
)
def test_what_is_not_understood_or_not_strided_is_left_alone(text: str, argument: object):
    assert offered(RULE, text, argument) == ()  # pyright: ignore[reportArgumentType]
