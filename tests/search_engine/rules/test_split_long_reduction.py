"""Split reductions: what is rewritten, that it stays right, what is left alone."""

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

from search_engine.rules.split_long_reduction import SplitLongReduction
from search_engine.rules.tile_strided_access import TileStridedAccess

RULE = SplitLongReduction()
MATRIX = tensor("x", "f32", 16384, 8192)
FEW_ROWS = tensor("a", "f32", 60, 1048576)
SIZES = ("1, 1", "3, 2003")


def source(kernel: str, entry: str) -> str:
    """A file with one kernel ``k`` and its entry."""
    return f"{HEADER}@triton.jit\n{kernel}\n\n\n{entry}\n"


# One program per row, scalar total, everything by position, a scaled result.
ROW_MEAN = source(
    """def k(a_ptr, y_ptr, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = 0.0
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        total += tl.sum(tl.load(a_ptr + row * stride + cols, mask=cols < n, other=0.0), axis=0)
    tl.store(y_ptr + row, total / n)""",
    """def f(a):
    m, n = a.shape
    y = torch.empty(m, device=a.device)
    k[(m,)](a, y, a.stride(0), n, 1024)
    return y""",
)

# A maximum, a vector accumulator, keyword arguments, a named grid before the output.
ROW_MAXIMUM = source(
    """def k(a_ptr, y_ptr, n, W: tl.constexpr = 512):
    row = tl.program_id(0)
    best = tl.full((W,), float("-inf"), dtype=tl.float32)
    for start in range(0, n, W):
        cols = start + tl.arange(0, W)
        v = tl.load(a_ptr + row * n + cols, mask=cols < n, other=float("-inf"))
        best = tl.maximum(best, v)
    result = tl.max(best, axis=0)
    tl.store(y_ptr + row, result.to(y_ptr.dtype.element_ty))""",
    """def f(a):
    m, n = a.shape
    grid = (m,)
    y = a.new_empty((m,))
    k[grid](a_ptr=a, y_ptr=y, n=n)
    return y""",
)

# Blocks of columns, rows one by one, a second grid axis for the batch.
BATCHED_COLUMNS = source(
    """def k(a_ptr, y_ptr, n, m, B: tl.constexpr):
    cols = tl.program_id(0) * B + tl.arange(0, B)
    item = tl.program_id(1)
    acc = tl.zeros([B], tl.float32)
    for r in tl.range(n):
        acc = acc + tl.load(a_ptr + (item * n + r) * m + cols, mask=cols < m, other=0.0)
    tl.store(y_ptr + item * m + cols, acc, mask=cols < m)""",
    """def f(a):
    batch, n, m = a.shape
    y = torch.empty((batch, m), device=a.device)
    k[(triton.cdiv(m, 64), batch)](a, y, n, m, B=64)
    return y""",
)

VARIANTS = {
    "row mean": (ROW_MEAN, FEW_ROWS, "x[0].mean(1)"),
    "row maximum": (ROW_MAXIMUM, FEW_ROWS, "x[0].max(1).values"),
}


def composed() -> str:
    """The shipped column sum after both rules, as a search would chain them."""
    text = (EXAMPLES / "column_sum.py").read_text()
    return rewritten(RULE, rewritten(TileStridedAccess(), text, MATRIX), MATRIX)


def cases(sizes: tuple[str, ...]) -> list[RunCase]:
    found = [
        case(name, rewritten(RULE, text, argument), "f", size, expected)
        for name, (text, argument, expected) in VARIANTS.items()
        for size in sizes
    ]
    batched = rewritten(RULE, BATCHED_COLUMNS, tensor("a", "f32", 16, 65536, 256))
    found += [case("batched", batched, "f", f"2, {size}", "x[0].sum(1)") for size in sizes]
    found += [
        case("columns", composed(), "column_sum", s, "x[0].sum(0)") for s in (*sizes, "97, 61")
    ]
    return found


def case(name: str, text: str, entry: str, size: str, expected: str) -> RunCase:
    return RunCase(f"{name} {size}", text, entry, (f"torch.randn({size}, generator=g)",), expected)


def test_results_stay_right_at_odd_sizes(tmp_path: Path):
    assert interpret(cases(SIZES), tmp_path) == {}


def test_results_compile_for_hopper(tmp_path: Path):
    assert compile_native(cases(("64, 2048",)), tmp_path) == {}


def test_splits_fill_the_device_and_are_powers_of_two():
    (rewrite,) = offered(RULE, ROW_MEAN, FEW_ROWS)
    counts = [int(a.value) for c in rewrite.configurations for a in c if a.name == "SPLITS"]
    assert all(count & (count - 1) == 0 for count in counts)
    assert max(counts) * 60 >= 132


def test_the_result_is_not_split_again():
    assert offered(RULE, rewritten(RULE, ROW_MEAN, FEW_ROWS), FEW_ROWS) == ()


def test_names_that_the_file_uses_already_are_avoided():
    text = ROW_MEAN.replace("    m, n = a.shape", "    SPLITS = partial = 3\n    m, n = a.shape")
    new = rewritten(RULE, text, FEW_ROWS)
    assert "SPLITS_2 = " in new
    assert "partial_2 = torch.empty((SPLITS_2, " in new


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("total / n", "tl.sqrt(total)", id="not linear"),
        pytest.param("total / n", "total + 1.0", id="an offset"),
        pytest.param("total = 0.0", "total = 1.0", id="does not start at zero"),
        pytest.param("torch.empty(m", "torch.zeros(m", id="output has contents"),
        pytest.param("range(0, n, BLOCK)", "range(row, n, BLOCK)", id="starts elsewhere"),
        pytest.param("total / n", "(total / n).to(tl.float16)", id="rounded before the end"),
        pytest.param("        total +=", "        last = cols\n        total +=", id=""),
    ],
)
def test_what_cannot_be_split_is_left_alone(old: str, new: str):
    text = ROW_MEAN.replace(old, new)
    if "last" in new:
        text = text.replace("y_ptr + row, total / n", "y_ptr + row, total / n, mask=last >= 0")
    assert text != ROW_MEAN
    assert offered(RULE, text, FEW_ROWS) == ()


def test_a_grid_that_fills_the_device_is_left_alone():
    assert offered(RULE, ROW_MEAN, tensor("a", "f32", 65536, 65536)) == ()


def test_a_short_loop_is_left_alone():
    assert offered(RULE, ROW_MEAN, tensor("a", "f32", 60, 2048)) == ()
