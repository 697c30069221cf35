"""Iterations that come to nothing are named at the loop, from masks and from ``where``."""

from __future__ import annotations

import pytest
from launch_subjects import HEADER, code, dot, line_of, load, make_subject, run, trace

from search_engine.domain.finding import Finding
from search_engine.findings.dead_iterations import DeadIterations

CAUSAL = (
    HEADER
    + """@triton.jit
def attention_kernel(q_ptr, k_ptr, out_ptr, n, BM: tl.constexpr, BN: tl.constexpr,
                     CAUSAL: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    q = tl.load(q_ptr + rows)
    top = tl.zeros((BM,), dtype=tl.float32)
    for start in range(0, n, BN):
        cols = start + tl.arange(0, BN)
        k = tl.load(k_ptr + cols)
        scores = tl.dot(q, k)
        if CAUSAL:
            scores = tl.where(rows[:, None] >= cols[None, :], scores, float("-inf"))
        top = tl.maximum(top, tl.max(scores, axis=1))
    tl.store(out_ptr + rows, top)


def attention(q, k, out):
    attention_kernel[(32, 8)](q, k, out, 4096, BM=128, BN=64, CAUSAL=True)
"""
)
LAUNCH, LOOP = line_of(CAUSAL, "attention_kernel["), line_of(CAUSAL, "for start")
GRID = (32, 8, 1)


def attention(
    text: str = CAUSAL, *, causal: str = "True", empty: int = 0, values: bool = True
) -> list[Finding]:
    line = line_of(text, "k = tl.load")
    access = load(
        line, "k_ptr", executions=24 * 64, empty=empty, lanes=24 * 64 * 64, tensor_bytes=2**28
    )
    launch = code(
        line_of(text, "attention_kernel["),
        GRID,
        dots=(dot(line_of(text, "tl.dot"), (128, 64, 64)),),
        values={"n": 4096} if values else {},
        constants={"BM": "128", "BN": "64", "CAUSAL": causal},
    )
    traces = (trace(launch.line, GRID, access),)
    return run(DeadIterations(), make_subject(text, traces, (launch,)))


def test_a_causal_kernel_that_visits_every_tile_is_named_at_its_loop() -> None:
    (found,) = attention()
    assert found.message == "48 % of iterations are fully masked"
    assert found.line == LOOP
    assert found.cost > 0.3


def test_without_the_mask_every_tile_counts() -> None:
    assert attention(causal="False") == []


def test_sizes_that_are_not_known_say_nothing() -> None:
    assert attention(values=False) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # ends at the diagonal
        ("range(0, n, BN)", "range(0, (tl.program_id(0) + 1) * BM, BN)"),
        # masks the ragged end only
        ("rows[:, None] >= cols[None, :]", "cols[None, :] < n"),
        # what the mask keeps is not known
        ("rows[:, None] >= cols[None, :]", "tl.load(q_ptr + cols)[None, :] > 0"),
        # skips the tiles above the diagonal itself
        (
            "        if CAUSAL:\n",
            "        if CAUSAL and start <= tl.program_id(0) * BM + BM - 1:\n",
        ),
        # stores in each iteration, so that the scores are not all it makes
        (
            "        top = tl.maximum",
            "        tl.store(out_ptr + cols, k)\n        top = tl.maximum",
        ),
    ],
)
def test_loops_that_do_their_work_are_silent(before: str, after: str) -> None:
    assert before in CAUSAL
    assert attention(CAUSAL.replace(before, after)) == []


def test_a_window_is_two_conditions() -> None:
    text = CAUSAL.replace(
        "rows[:, None] >= cols[None, :]",
        "(rows[:, None] >= cols[None, :]) & (rows[:, None] - cols[None, :] < 512)",
    )
    (found,) = attention(text)
    share = found.facts["dead"]
    assert isinstance(share, float)
    assert 0.8 < share < 0.9


def test_loads_that_are_all_masked_off_count_too() -> None:
    (found,) = attention(causal="False", empty=12 * 64)
    assert found.message == "50 % of iterations are fully masked"


def test_a_few_masked_iterations_are_silent() -> None:
    assert attention(causal="False", empty=100) == []
