"""Accumulators move from scalars to blocks where that is the same sum, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from search_engine.domain.candidate import Numerics
from search_engine.rules.vector_accumulator import VectorAccumulator
from tests.search_engine.rules.rule_runs import (
    EXAMPLES,
    HEADER,
    RunCase,
    compile_native,
    interpret,
    offered,
    rewritten,
    tensor,
)

RULE = VectorAccumulator()
X = tensor("x", "f32", 64, 1000)

LARGEST = (
    HEADER
    + """
@triton.jit
def extremes(inp, outp, stride, N, B: tl.constexpr):
    pid = tl.program_id(0)
    lanes = tl.arange(0, B)
    hi = float("-inf")
    lo = float("inf")
    for k in range(tl.cdiv(N, B)):
        ok = k * B + lanes < N
        hi = max(hi, tl.max(tl.load(inp + pid * stride + k * B + lanes, ok, -float("inf"))))
        v = tl.load(inp + pid * stride + k * B + lanes, ok, float("inf"))
        lo = tl.minimum(tl.min(v, 0), lo)
    tl.store(outp + pid, hi - lo)


def run(x):
    out = torch.empty(x.shape[0])
    extremes[(x.shape[0],)](x, out, x.stride(0), x.shape[1], 64)
    return out
"""
)

MOMENTS = (
    HEADER
    + """
@triton.jit
def moments(x_ptr, out_ptr, n, per_program, SIZE: tl.constexpr):
    row = tl.program_id(0)
    for part in range(per_program):
        first = 0.0
        second = 0.0
        start = part * 0
        while start < n:
            offs = start + tl.arange(0, SIZE)
            first += tl.sum(tl.load(x_ptr + row * n + offs, mask=offs < n, other=0.0))
            start += SIZE
        for at in tl.range(0, n, SIZE):
            offs = at + tl.arange(0, SIZE)
            v = tl.load(x_ptr + row * n + offs, mask=offs < n, other=0.0)
            second = second + tl.sum(v * v, axis=0)  # of squares
        tl.store(out_ptr + row, second / n - (first / n) * (first / n))


def run(x):
    out = torch.empty(x.shape[0])
    moments[(x.shape[0],)](x, out, x.shape[1], per_program=2, SIZE=128)
    return out
"""
)

SHAPES = ("3,1000", "2,1", "1,64", "2,129")


def _example(name: str) -> str:
    return (EXAMPLES / f"{name}.py").read_text()


def _cases() -> list[RunCase]:
    w = tensor("w", "f32", 1000)
    width = "torch.nn.functional.{}(x[0], (x[0].shape[-1],), {})"
    named = [
        ("row_sum", _example("row_sum"), "row_sum", 0, "x[0].sum(1)"),
        ("softmax", _example("softmax"), "softmax", 0, "torch.softmax(x[0], -1)"),
        ("layer_norm", _example("layer_norm"), "layer_norm", 2,
         width.format("layer_norm", "x[1], x[2]")),
        ("rms_norm", _example("rms_norm"), "rms_norm", 1, width.format("rms_norm", "x[1], 1e-6")),
        ("extremes", LARGEST, "run", 0, "x[0].amax(1) - x[0].amin(1)"),
        ("moments", MOMENTS, "run", 0, "x[0].var(1, correction=0)"),
    ]  # fmt: skip
    return [
        RunCase(
            f"{name} {shape}",
            rewritten(RULE, text, X, *[w] * vectors),
            entry,
            (
                f"torch.randn({shape}, generator=g)",
                *[f"torch.randn({shape.split(',')[1]}, generator=g)"] * vectors,
            ),
            expected,
        )
        for name, text, entry, vectors, expected in named
        for shape in SHAPES
    ]


def test_results_stay_right(tmp_path: Path):
    assert interpret(_cases(), tmp_path) == {}


def test_candidates_compile_for_a_gpu(tmp_path: Path):
    cases = [case for case in _cases() if case.name.endswith("3,1000")]
    assert compile_native(cases, tmp_path) == {}


def test_a_maximum_is_exact_and_a_sum_is_not():
    (extremes,) = offered(RULE, LARGEST, X)
    (total,) = offered(RULE, _example("row_sum"), X)
    assert extremes.numerics is Numerics.EXACT
    assert total.numerics is Numerics.REASSOCIATES


def test_the_loop_no_longer_reduces():
    loop = rewritten(RULE, _example("row_sum"), X).split("for start")[1].split("total = ")[0]
    assert "tl.sum" not in loop


def test_comments_in_the_loop_stay():
    assert "# of squares" in rewritten(RULE, MOMENTS, X)


def test_a_carried_sum_is_left_alone():
    assert offered(RULE, _example("cumsum"), X) == ()


ROW_SUM = _example("row_sum")

REFUSED = {
    "an integer accumulator": ROW_SUM.replace("total = 0.0", "total = 0"),
    "a start that is not neutral": ROW_SUM.replace("total = 0.0", "total = 1.0"),
    "a start out of an argument": ROW_SUM.replace("total = 0.0", "total = x_stride * 0.0"),
    "another use in the loop": ROW_SUM.replace("total += ", "x = x * total\n        total += "),
    "a use before the loop": ROW_SUM.replace("0.0\n", "0.0\n    other = total\n", 1),
    "a scalar in the sum": ROW_SUM.replace("tl.sum(x.to(tl.float32), axis=0)", "x_stride * 1.0"),
    "a tile": ROW_SUM.replace("x.to(tl.float32), axis=0", "x[None, :], axis=1"),
    "blocks of two sizes": ROW_SUM.replace("    total = 0.0", "    y = tl.arange(0, 16)\n"
                                           "    total = 0.0"),
    "a condition": ROW_SUM.replace("total += ", "if start > 0:\n            total += "),
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED.keys())
def test_what_is_not_understood_is_left_alone(text: str):
    assert text != ROW_SUM
    assert offered(RULE, text, X) == ()
