"""Online reductions: one pass gives what two gave, also where a row begins with -inf."""

from __future__ import annotations

from pathlib import Path

import pytest

from search_engine.domain.candidate import Numerics, apply_edits
from search_engine.domain.workload import TensorArgument
from search_engine.rules.online_reduction import OnlineReduction
from tests.search_engine.rules.rule_runs import (
    EXAMPLES,
    HEADER,
    RunCase,
    compile_native,
    interpret,
    offered,
    tensor,
)

RULE = OnlineReduction()
X = tensor("x", "f32", 64, 1000)

LOG2_FORM = (
    HEADER
    + """
@triton.jit
def lse(inp, outp, stride, N, B: tl.constexpr):
    pid = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, B)
    hi = float("-inf")
    acc = 0.0
    for k in range(tl.cdiv(N, B)):
        ok = k * B + lanes < N
        v = tl.load(inp + pid * stride + k * B + lanes, ok, -float("inf"))
        hi = max(hi, tl.max(v, 0))
    for j in range(tl.cdiv(N, B)):
        ok = j * B + lanes < N
        v = tl.load(inp + pid * stride + j * B + lanes, ok, 0.0)
        p = tl.exp2((v - hi) * 1.4426950408889634)
        p = tl.where(ok, p, 0.0)
        acc = acc + tl.sum(p)
    tl.store(outp + pid, hi + tl.log(acc))


def run(x):
    out = torch.empty(x.shape[0])
    lse[(x.shape[0],)](x, out, x.stride(0), x.shape[1], 64)
    return out
"""
)

MASKED_FORM = (
    HEADER
    + """
@triton.jit
def soft(x_ptr, y_ptr, width, BLOCK: tl.constexpr = 64):
    row = tl.program_id(0)
    x_ptr += row * width
    y_ptr += row * width
    largest = -float("inf")
    for begin in tl.range(0, width, BLOCK):
        at = begin + tl.arange(0, BLOCK)
        value = tl.load(x_ptr + at, mask=at < width, other=-float("inf"))
        largest = tl.maximum(tl.max(value, axis=0), largest)

    denominator = 0.0
    for begin in tl.range(0, width, BLOCK):
        at = begin + tl.arange(0, BLOCK)
        value = tl.load(x_ptr + at, mask=at < width, other=0.0)
        power = tl.exp(value - largest)
        denominator += tl.sum(tl.where(at < width, power, 0.0), axis=0)

    for begin in tl.range(0, width, BLOCK):
        at = begin + tl.arange(0, BLOCK)
        value = tl.load(x_ptr + at, mask=at < width, other=0.0)
        tl.store(y_ptr + at, tl.exp(value - largest) / denominator, mask=at < width)


def run(x):
    y = torch.empty_like(x)
    soft[(x.shape[0],)](x, y, width=x.shape[1])
    return y
"""
)

LATE_START = "torch.cat([torch.full((2, 300), -float('inf')), torch.randn(2, 77, generator=g)], 1)"
INPUTS = (
    "torch.randn(3, 1000, generator=g)",
    "torch.randn(2, 1, generator=g)",
    "torch.randn(2, 129, generator=g) * 100",
    "torch.linspace(-300, 300, 1000)[None, :]",
    "torch.linspace(300, -300, 1000)[None, :]",
    LATE_START,
)


def _example(name: str) -> str:
    return (EXAMPLES / f"{name}.py").read_text()


def _cases() -> list[RunCase]:
    # p is written twice in this form, which the rule does not follow.
    log2 = LOG2_FORM.replace("p = tl.where(ok, p, 0.0)", "q = tl.where(ok, p, 0.0)").replace(
        "tl.sum(p)", "tl.sum(q)"
    )
    named = [
        ("softmax", _example("softmax"), "softmax", "torch.softmax(x[0], -1)"),
        ("exp2", log2, "run", "torch.logsumexp(x[0], 1)"),
        ("masked", MASKED_FORM, "run", "torch.softmax(x[0], -1)"),
    ]
    cases = [
        RunCase(f"{name} {form} {number}", after, entry, (given,), expected)
        for name, text, entry, expected in named
        for form, after in _forms(text, X).items()
        for number, given in enumerate(INPUTS)
    ]
    arguments = tensor("logits", "f32", 64, 1000), tensor("targets", "i64", 64)
    want = "torch.nn.functional.cross_entropy(x[0], x[1], reduction='none')"
    given = (INPUTS[0], "torch.full((3,), 7)")
    cases += [
        RunCase(f"loss {form} 0", loss, "cross_entropy", given, want)
        for form, loss in _forms(_example("cross_entropy"), *arguments).items()
    ]
    return cases


def _forms(text: str, *arguments: TensorArgument) -> dict[str, str]:
    rewrites = offered(RULE, text, *arguments)
    assert len(rewrites) == 2
    return {rewrite.title: apply_edits(text, rewrite.edits) for rewrite in rewrites}


def test_results_stay_right(tmp_path: Path):
    assert interpret(_cases(), tmp_path) == {}


def test_candidates_compile_for_a_gpu(tmp_path: Path):
    cases = [case for case in _cases() if case.name.endswith(" 0")]
    assert compile_native(cases, tmp_path) == {}


def test_one_loop_is_left_and_reads_the_row_once():
    for text in _forms(_example("cross_entropy"), X, tensor("targets", "i64", 64)).values():
        assert text.count("for start in") == 1
        assert text.count("tl.load(logits_row + cols") == 1


def test_the_second_form_reduces_behind_the_loop():
    scalar, by_lane = _forms(MASKED_FORM, X).values()
    assert "tl.max(" in scalar.split("for begin")[1]
    first_loop, behind = by_lane.split("for begin")[1].split("    new_largest = tl.max(largest")
    assert "tl.max(" not in first_loop
    assert "tl.sum(" not in first_loop
    assert "tl.sum(denominator" in behind


def test_loads_with_another_filler_become_one():
    text = next(iter(_forms(MASKED_FORM, X).values()))
    first_loop = text.split("for begin")[1]
    assert first_loop.count("tl.load(") == 1


def test_sums_are_declared_as_reassociated():
    for rewrite in offered(RULE, MASKED_FORM, X):
        assert rewrite.numerics is Numerics.REASSOCIATES
        assert rewrite.title.startswith("compute largest and denominator in one pass")


SOFTMAX = _example("softmax")
STORES = SOFTMAX.replace(
    "denominator += tl.sum(tl.exp(x - row_max), axis=0)",
    "denominator += tl.sum(tl.exp(x - row_max), axis=0)\n        tl.store(out_row + cols, x, mask)",
)

POWER = "tl.exp(x - row_max), axis"
LINEAR = "tl.sum(tl.exp(x - row_max)"
RESCALED = "    denominator = 0.0\n    row_max = row_max * 2.0"
UPDATE = "        row_max = tl.maximum"
COUNTED = "        row_max = row_max + 0.0 * start\n" + UPDATE

REFUSED = {
    "another walk": SOFTMAX.replace("range(0, n_cols, BLOCK)", "range(0, n_cols - 1, BLOCK)", 1),
    "a maximum that starts higher": SOFTMAX.replace('-float("inf")\n    for', "0.0\n    for", 1),
    "a second use of the maximum": SOFTMAX.replace(POWER, f"row_max * {POWER}"),
    "a sum that is not linear": SOFTMAX.replace(LINEAR, "tl.sum(tl.sqrt(tl.exp(x - row_max))"),
    "the other sign": SOFTMAX.replace(POWER, "tl.exp(row_max - x), axis"),
    "a change of the maximum in between": SOFTMAX.replace("    denominator = 0.0", RESCALED),
    "a store in the second pass": STORES,
    "another change in the first pass": SOFTMAX.replace(UPDATE, COUNTED, 1),
    "a name written twice": LOG2_FORM,
}


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED.keys())
def test_what_is_not_understood_is_left_alone(text: str):
    assert text != SOFTMAX
    assert offered(RULE, text, X) == ()
