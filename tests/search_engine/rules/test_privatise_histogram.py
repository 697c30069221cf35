"""Private counts: what is rewritten, that counts stay exact, what is left alone."""

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
from search_engine.rules.privatise_histogram import PrivatiseHistogram

RULE = PrivatiseHistogram()
SHIPPED = (EXAMPLES / "histogram.py").read_text()
SHIPPED_INPUT = tensor("x", "i32", 134217728)
DATA = tensor("data", "u8", 134217728)
SIZES = (1, 1023, 10007)


def source(kernel: str, entry: str) -> str:
    """A file with one kernel ``k`` and its entry."""
    return f"{HEADER}@triton.jit\n{kernel}\n\n\n{entry}\n"


# Bytes, no name for the offsets' program, a module constant, 64-bit counters.
BYTES = source(
    """def k(data, hist, size, B: tl.constexpr = 512):
    pid = tl.program_id(0)
    idx = pid * B + tl.arange(0, B)
    values = tl.load(data + idx, mask=idx < size)
    tl.atomic_add(hist + values, 1, mask=idx < size, sem="relaxed")""",
    """BINS = 256


def f(data):
    flat = data.reshape(-1)
    hist = torch.zeros((BINS,), dtype=torch.int64, device=data.device)
    k[(triton.cdiv(flat.numel(), 512),)](flat, hist, flat.numel())
    return hist""",
)

# The number of bins is an argument; the kernel checks the range; wide values and offsets.
CHECKED = source(
    """def k(data, hist, n, bins, BLOCK: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    live = offs < n
    v = tl.load(data + offs, mask=live, other=-1)
    tl.atomic_add(hist + v, 1, mask=live & (v >= 0) & (v < bins))""",
    """def f(data, bins=100):
    n = data.numel()
    hist = torch.zeros(bins, dtype=torch.int32, device=data.device)
    BLOCK = 1024
    grid = lambda meta: (triton.cdiv(n, meta["BLOCK"]),)
    k[grid](data, hist, n, bins, BLOCK=BLOCK)
    return hist""",
)

# The bin is computed; a count that is no power of two; an increment by position.
COMPUTED = source(
    """def k(data, hist, n, BLOCK: tl.constexpr):
    start = tl.program_id(0) * BLOCK
    offs = start + tl.arange(0, BLOCK)
    mask = offs < n
    v = tl.load(data + offs, mask=mask, other=0.0)
    # one bin for each tenth
    tl.atomic_add(hist + (v * 10).to(tl.int32), 1, mask)""",
    """def f(data):
    n = data.numel()
    hist = torch.zeros([10], dtype=torch.int32, device=data.device)
    k[(triton.cdiv(n, 256),)](data, hist, n, 256)
    return hist""",
)

BELOW_100 = "torch.bincount(x[0][(x[0] >= 0) & (x[0] < 100)].long(), minlength=100)"


def cases(sizes: tuple[int, ...]) -> list[RunCase]:
    found: list[RunCase] = []
    for size in sizes:
        byte = f"torch.randint(0, 256, ({size},), generator=g, dtype=torch.uint8)"
        small = f"torch.randint(0, 256, ({size},), generator=g, dtype=torch.int32)"
        wide = f"torch.randint(-50, 150, ({size},), generator=g) * (2**33 if {size} > 5000 else 1)"
        many = f"torch.randint(0, 5000, ({size},), generator=g)"
        unit = f"torch.rand({size}, generator=g)"
        shipped = rewritten(RULE, SHIPPED, SHIPPED_INPUT)
        count = "torch.bincount(x[0].long(), minlength=256)"
        found += [
            RunCase(f"shipped {size}", shipped, "histogram", (small,), count),
            RunCase(f"bytes {size}", rewritten(RULE, BYTES, DATA), "f", (byte,), count),
            RunCase(f"checked {size}", rewritten(RULE, CHECKED, DATA), "f", (wide,), BELOW_100),
            RunCase(
                f"many bins {size}",
                rewritten(RULE, CHECKED, DATA),
                "f",
                (many, "5000"),
                "torch.bincount(x[0], minlength=5000)",
            ),
            RunCase(
                f"computed {size}",
                rewritten(RULE, COMPUTED, DATA),
                "f",
                (unit,),
                "torch.bincount((x[0] * 10).long(), minlength=10)",
            ),
        ]
    return found


def test_counts_stay_exact_at_odd_sizes(tmp_path: Path):
    assert interpret(cases(SIZES), tmp_path) == {}


def test_results_compile_for_hopper(tmp_path: Path):
    assert compile_native(cases((65536,)), tmp_path) == {}


def test_counts_are_exact_and_blocks_and_programs_are_offered():
    (rewrite,) = offered(RULE, SHIPPED, SHIPPED_INPUT)
    assert rewrite.numerics is Numerics.EXACT
    assert {a.name for c in rewrite.configurations for a in c} == {"BLOCK", "PROGRAMS"}


def test_comments_in_the_kernel_stay():
    assert "# one bin for each tenth" in rewritten(RULE, COMPUTED, DATA)


def test_many_bins_keep_their_atomics():
    new = rewritten(RULE, CHECKED, DATA)
    assert "tl.atomic_add(hist + v, 1, mask=live & (v >= 0) & (v < bins))" in new


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("tl.atomic_add(hist + v, 1", "tl.atomic_add(hist + v, 2", id="other steps"),
        pytest.param("tl.atomic_add(hist + v, 1", "tl.atomic_max(hist + v, 1", id="a maximum"),
        pytest.param("torch.int32", "torch.float32", id="floating-point counters"),
        pytest.param("torch.zeros(bins", "torch.empty(bins", id="counters with contents"),
        pytest.param("torch.zeros(bins", "torch.zeros(bins, 2", id="two dimensions"),
        pytest.param("    tl.atomic_add", "    old = tl.atomic_add", id="result used"),
        pytest.param("mask=live, other=-1", "mask=None, other=-1", id="no mask"),
    ],
)
def test_what_is_no_plain_count_is_left_alone(old: str, new: str):
    assert old in CHECKED
    assert offered(RULE, CHECKED.replace(old, new), DATA) == ()


def test_a_fixed_number_of_very_many_bins_is_left_alone():
    assert (
        offered(RULE, SHIPPED.replace("torch.zeros(256", "torch.zeros(65536"), SHIPPED_INPUT) == ()
    )
