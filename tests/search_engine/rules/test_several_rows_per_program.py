"""Several rows per program: tiles give the same results, whatever the grid looks like."""

from __future__ import annotations

from pathlib import Path

import pytest

from search_engine.domain.candidate import Numerics, apply_edits
from search_engine.rules.several_rows_per_program import SeveralRowsPerProgram
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

RULE = SeveralRowsPerProgram()
ROPE = (EXAMPLES / "rope.py").read_text()
ROPE_ARGUMENTS = (
    tensor("x", "bf16", 8, 128, 32, 128),
    tensor("cos", "f32", 128, 64),
    tensor("sin", "f32", 128, 64),
)
ROTATED = (
    "torch.cat([x[0].chunk(2, -1)[0] * x[1][:, None] - x[0].chunk(2, -1)[1] * x[2][:, None], "
    "x[0].chunk(2, -1)[1] * x[1][:, None] + x[0].chunk(2, -1)[0] * x[2][:, None]], -1)"
)

FLAT_ROPE = (
    HEADER
    + """
@triton.jit
def rotate(X, COS, SIN, Y, seq, heads, dim, HALF: tl.constexpr):
    pid = tl.program_id(0)
    pos = (pid // heads) % seq
    lane = tl.arange(0, HALF)
    ok = lane < dim // 2
    base = pid * dim
    a = tl.load(X + base + lane, ok)
    b = tl.load(X + base + dim // 2 + lane, ok)
    c = tl.load(COS + pos * (dim // 2) + lane, ok)
    s = tl.load(SIN + pos * (dim // 2) + lane, ok)
    tl.store(Y + base + lane, a * c - b * s, ok)
    tl.store(Y + base + dim // 2 + lane, b * c + a * s, ok)


def run(x, cos, sin):
    y = torch.empty_like(x)
    batch, seq, heads, dim = x.shape
    grid = lambda meta: (batch * seq * heads,)
    rotate[grid](x, cos, sin, y, seq, heads, dim, HALF=triton.next_power_of_2(dim // 2))
    return y
"""
)

GROUP_SCALE = (
    HEADER
    + """
@triton.jit
def swish(v):
    return v * tl.sigmoid(v)


@triton.jit
def scale_groups(x_ptr, q_ptr, s_ptr, group, eps=1e-6, BLOCK: tl.constexpr = 128):
    g = tl.program_id(axis=0).to(tl.int64)
    offs = tl.arange(0, BLOCK)
    x = swish(tl.load(x_ptr + g * group + offs, mask=offs < group, other=0.0).to(tl.float32))
    top = tl.maximum(tl.max(tl.abs(x), -1), eps)
    tl.store(q_ptr + g * group + offs, x / top, mask=offs < group)
    tl.store(s_ptr + g, top)


def run(x):
    q = torch.empty_like(x)
    s = torch.empty(x.shape[0])
    groups = x.shape[0]

    def grid(meta):
        return (groups,)

    scale_groups[grid](x, q, s, x.shape[1])
    return q * s[:, None]
"""
)

ROW_LOSS = (
    HEADER
    + """
@triton.jit
def loss(logits, labels, out, n, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    row = tl.program_id(0)
    label = tl.load(labels + row)
    x = tl.load(logits + row * n + cols, mask=cols < n, other=-float("inf"))
    top = tl.max(x, axis=0)
    total = tl.sum(tl.exp(x - top), axis=0)
    running = tl.cumsum(tl.where(cols == label, x, 0.0), axis=0)
    picked = tl.sum(tl.where(cols == label, running, 0.0))
    tl.store(out + row, tl.log(total) + top - picked)


def run(logits, labels):
    rows, n = logits.shape
    out = torch.empty(rows)
    loss[(rows,)](logits, labels, out, n, BLOCK=triton.next_power_of_2(n))
    return out
"""
)

SWISH = "torch.nn.functional.silu(x[0])"


def _rope_case(name: str, text: str, entry: str, shape: tuple[int, int, int, int]) -> RunCase:
    batch, seq, heads, dim = shape
    angles = f"torch.randn({seq}, {dim // 2}, generator=g)"
    x = f"torch.randn({batch}, {seq}, {heads}, {dim}, generator=g)"
    return RunCase(f"{name} {shape}", text, entry, (x, angles, angles), ROTATED)


def _rope_texts() -> dict[str, str]:
    rewrites = offered(RULE, ROPE, *ROPE_ARGUMENTS)
    return {rewrite.title: apply_edits(ROPE, rewrite.edits) for rewrite in rewrites}


def test_results_stay_right_for_any_number_of_rows(tmp_path: Path):
    shapes = ((1, 3, 5, 8), (2, 1, 1, 2), (3, 2, 33, 12))
    texts = _rope_texts()
    cases = [_rope_case(name, text, "rope", s) for name, text in texts.items() for s in shapes]
    flat = rewritten(RULE, FLAT_ROPE, *ROPE_ARGUMENTS)
    cases += [_rope_case("flat", flat, "run", shape) for shape in shapes]
    groups = rewritten(RULE, GROUP_SCALE, tensor("x", "f32", 1000, 128))
    losses = rewritten(RULE, ROW_LOSS, tensor("logits", "f32", 9, 100), tensor("labels", "i64", 9))
    for rows, width in ((1, 1), (7, 100), (33, 128), (64, 3)):
        x = f"torch.randn({rows}, {width}, generator=g)"
        label = f"torch.randint(0, {width}, ({rows},), generator=g)"
        want = "torch.nn.functional.cross_entropy(x[0], x[1], reduction='none')"
        cases.append(RunCase(f"groups {rows} {width}", groups, "run", (x,), SWISH))
        cases.append(RunCase(f"loss {rows} {width}", losses, "run", (x, label), want))
    assert interpret(cases, tmp_path) == {}


def test_candidates_compile_for_a_gpu(tmp_path: Path):
    cases = [_rope_case(name, text, "rope", (1, 3, 5, 8)) for name, text in _rope_texts().items()]
    groups = rewritten(RULE, GROUP_SCALE, tensor("x", "f32", 1000, 128))
    losses = rewritten(RULE, ROW_LOSS, tensor("logits", "f32", 9, 100), tensor("labels", "i64", 9))
    x, labels = "torch.randn(33, 100)", "torch.zeros(33, dtype=torch.int64)"
    cases.append(RunCase("groups", groups, "run", (x,), ""))
    cases.append(RunCase("loss", losses, "run", (x, labels), ""))
    assert compile_native(cases, tmp_path) == {}


def test_the_axis_whose_rows_share_most_comes_first():
    rewrites = offered(RULE, ROPE, *ROPE_ARGUMENTS)
    assert len(rewrites) == 3
    assert "n_heads" in rewrites[0].title
    text = apply_edits(ROPE, rewrites[0].edits)
    assert "tl.load(cos_ptr + pos * half + cols, mask=mask, other=0.0)" in text
    assert "grid = (triton.cdiv(n_heads, ROWS), seq_len, batch)" in text


def test_a_launch_under_a_device_guard_is_understood():
    guarded = ROPE.replace(
        "    rope_kernel[", "    with torch.device(x.device):\n        rope_kernel["
    )
    for rewrite in offered(RULE, guarded, *ROPE_ARGUMENTS):
        text = apply_edits(guarded, rewrite.edits)
        assert "    ROWS = " in text.split("with torch.device")[0]
        assert "ROWS=ROWS" in text.split("with torch.device")[1]
    assert len(offered(RULE, guarded, *ROPE_ARGUMENTS)) == 3


def test_only_a_kernel_without_reductions_is_exact():
    assert offered(RULE, ROPE, *ROPE_ARGUMENTS)[0].numerics is Numerics.EXACT
    (groups,) = offered(RULE, GROUP_SCALE, tensor("x", "f32", 1000, 128))
    assert groups.numerics is Numerics.REASSOCIATES


def test_each_suggested_size_is_a_value_of_the_local():
    rewrite = offered(RULE, ROPE, *ROPE_ARGUMENTS)[0]
    assert {item[0].name for item in rewrite.configurations} == {"ROWS"}
    assert sorted(int(item[0].value) for item in rewrite.configurations) == [2, 4, 8, 16, 32]


def test_a_taken_name_is_not_reused():
    text = ROPE.replace("head = tl.program_id(0)", "ROWS = tl.program_id(0)").replace(
        "+ head) *", "+ ROWS) *"
    )
    rewrite = offered(RULE, text, *ROPE_ARGUMENTS)[0]
    assert "ROWS_2: tl.constexpr" in apply_edits(text, rewrite.edits)


def test_a_count_that_is_already_passed_is_used():
    text = _rope_texts()["work on several of the seq_len rows in one program"]
    assert "row_mask = pos < seq_len" in text


REFUSED = {
    "a branch on the row": ROW_LOSS.replace(
        "    top = tl.max", "    if label < 0:\n        x = x * 0.0\n    top = tl.max"
    ),
    "a loop": ROW_LOSS.replace("    top = tl.max(x, axis=0)", "    for i in range(3):\n"
                               "        x = x * 2\n    top = tl.max(x, axis=0)"),
    "a store that all rows share": ROW_LOSS.replace("tl.store(out + row,", "tl.store(out,"),
    "an atomic": ROW_LOSS.replace("tl.store(", "tl.atomic_add("),
    "an unknown function": ROW_LOSS.replace("tl.log(total)", "mystery(total)"),
    "a tile already": ROW_LOSS.replace("tl.arange(0, BLOCK)", "tl.arange(0, BLOCK)[None, :]"),
    "a grid of blocks": ROW_LOSS.replace("[(rows,)]", "[(triton.cdiv(rows, 4),)]"),
    "two uses of the index": ROW_LOSS.replace("out + row,", "out + tl.program_id(0),"),
    "a number of programs": ROW_LOSS.replace("row * n", "row * tl.num_programs(0)"),
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED.keys())
def test_what_is_not_understood_is_left_alone(text: str):
    assert text != ROW_LOSS
    arguments = tensor("logits", "f32", 9, 100), tensor("labels", "i64", 9)
    assert offered(RULE, text, *arguments) == ()


def test_rows_that_fill_a_program_are_left_alone():
    arguments = tensor("logits", "f32", 9, 10_000), tensor("labels", "i64", 9)
    assert offered(RULE, ROW_LOSS, *arguments) == ()
