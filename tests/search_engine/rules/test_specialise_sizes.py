"""Which arguments come off the lists that withhold facts from the compiler."""

from __future__ import annotations

from pathlib import Path

import pytest

from search_engine.rules.specialise_sizes import SpecialiseSizes
from tests.search_engine.rules.rule_runs import (
    HEADER,
    RunCase,
    compile_native,
    interpret,
    offered,
    rewritten,
    tensor,
)

RULE = SpecialiseSizes()
X = tensor("x", "f32", 64, 1024)

KERNEL = (
    HEADER
    + """
@triton.jit({arguments})
def scale_kernel(x_ptr, out_ptr, stride, n, factor, seed, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    base = row{cast} * stride
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + base + cols, mask=cols < n)
    tl.store(out_ptr + base + cols, x * factor + seed * 0.0, mask=cols < n)


def scale(x):
    rows, n = x.shape
    out = torch.empty_like(x)
    scale_kernel[(rows,)](x, out, x.stride(0), n, 2.0, 3, BLOCK=1024)
    return out
"""
)


def _kernel(arguments: str, cast: str = "") -> str:
    return KERNEL.replace("{arguments}", arguments).replace("{cast}", cast)


def _decorator(text: str) -> str:
    return text.split("\n@")[1].split("\n")[0]


@pytest.mark.parametrize(
    ("arguments", "after"),
    [
        ('do_not_specialize=["n", "stride"]', "triton.jit"),
        ('do_not_specialize=["n", "factor"]', 'triton.jit(do_not_specialize=["factor"])'),
        ('do_not_specialize=["seed", "n"], debug=True',
         'triton.jit(do_not_specialize=["seed"], debug=True)'),
        ("do_not_specialize=(2, 5)", "triton.jit(do_not_specialize=[5])"),
        ('do_not_specialize_on_alignment=["x_ptr", "out_ptr"]', "triton.jit"),
        ('do_not_specialize=["seed"], do_not_specialize_on_alignment=["x_ptr"]',
         'triton.jit(do_not_specialize=["seed"])'),
    ],
)  # fmt: skip
def test_address_arguments_come_off_the_lists(arguments: str, after: str):
    assert _decorator(rewritten(RULE, _kernel(arguments), X)) == after


@pytest.mark.parametrize(
    "arguments",
    [
        "",
        'do_not_specialize=["factor", "seed"]',
        "do_not_specialize=WITHHELD",
        "do_not_specialize=[-1]",
    ],
)
def test_other_lists_stay(arguments: str):
    assert offered(RULE, _kernel(arguments), X) == ()


def test_an_argument_with_a_method_call_stays_on_the_list_of_values():
    text = _kernel('do_not_specialize=["stride"]').replace("* stride", "* stride.to(tl.int64)")
    assert offered(RULE, text, X) == ()
    aligned = text.replace("do_not_specialize=", "do_not_specialize_on_alignment=")
    assert _decorator(rewritten(RULE, aligned, X)) == "triton.jit"


def test_the_bare_decorator_is_left_alone():
    assert offered(RULE, _kernel("").replace("@triton.jit()", "@triton.jit"), X) == ()


def test_candidates_run_and_compile_also_for_sizes_of_one(tmp_path: Path):
    text = rewritten(RULE, _kernel('do_not_specialize=["n", "stride"]', ".to(tl.int64)"), X)
    cases = [
        RunCase(shape, text, "scale", (f"torch.randn({shape}, generator=g)",), "x[0] * 2", True)
        for shape in ("3,1000", "2,1", "5,1024")
    ]
    assert interpret(cases, tmp_path) == {}
    assert compile_native(cases, tmp_path) == {}
