"""One block per row: which kernels get it, and that their results stay what they were."""

from __future__ import annotations

from pathlib import Path

import pytest

from search_engine.domain.candidate import Numerics
from search_engine.rules.one_block_per_row import OneBlockPerRow
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

RULE = OneBlockPerRow()

BY_BLOCK_NUMBER = (
    HEADER
    + """
@triton.jit
def sm(inp, outp, stride, N, B: tl.constexpr):
    pid = tl.program_id(axis=0).to(tl.int64)
    lanes = tl.arange(0, B)
    peak = float("-inf")
    for k in range(tl.cdiv(N, B)):
        at = k * B + lanes
        v = tl.load(inp + pid * stride + at, at < N, float("-inf"))
        peak = tl.maximum(peak, tl.max(v, 0))
    norm = 0.0
    for k in range(0, tl.cdiv(N, B)):
        at = k * B + lanes
        v = tl.load(inp + pid * stride + at, at < N, float("-inf"))
        norm = norm + tl.sum(tl.exp(v - peak), 0)
    for k in tl.range(tl.cdiv(N, B), num_stages=2):
        at = k * B + lanes
        v = tl.load(inp + pid * stride + at, mask=at < N)
        tl.store(outp + pid * stride + at, tl.exp(v - peak) / norm, at < N)


def run(x):
    rows, cols = x.shape
    out = torch.empty_like(x)
    B = 64
    with torch.no_grad():
        sm[(rows,)](x, out, x.stride(0), cols, B)
    return out
"""
)

POINTER_INCREMENTS = (
    HEADER
    + """
@triton.jit
def rms(X, W, Y, stride, width, eps, BLOCK: tl.constexpr = 128):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    n_blocks = (width + BLOCK - 1) // BLOCK

    ptr = X + row * stride + offs
    acc = tl.zeros([BLOCK], dtype=tl.float32)
    for i in range(n_blocks):
        inside = width > i * BLOCK + offs
        # squares in float32
        v = tl.load(ptr, mask=inside, other=0).to(tl.float32)
        acc += v * v
        ptr += BLOCK
    inv = tl.rsqrt(tl.sum(acc, axis=0) / width + eps)

    ptr = X + row * stride + offs
    for i in range(n_blocks):
        inside = width > i * BLOCK + offs
        v = tl.load(ptr, mask=inside, other=0).to(tl.float32)
        w = tl.load(W + i * BLOCK + offs, mask=inside)
        tl.store(Y + row * stride + i * BLOCK + offs, v * inv * w, mask=inside)
        ptr += BLOCK


def run(x, w):
    x2 = x.view(-1, x.shape[-1])
    out = torch.empty_like(x2)
    grid = lambda meta: (x2.shape[0],)
    rms[grid](
        x2,
        w,
        out,
        x2.stride(0),
        x2.shape[1],
        eps=1e-6,
    )
    return out.view(x.shape)
"""
)

STATIC_BRANCH = (
    HEADER
    + """
@triton.jit
def ln(X, Y, W, B, Mean, N, eps, HAS_BIAS: tl.constexpr, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    Y += row * N
    X += row * N
    _mean = tl.zeros([BLOCK_SIZE], dtype=tl.float32)
    for off in range(0, N, BLOCK_SIZE):
        cols = off + tl.arange(0, BLOCK_SIZE)
        a = tl.load(X + cols, mask=cols < N, other=0.).to(tl.float32)
        _mean += a
    mean = tl.sum(_mean, axis=0) / N
    _var = tl.zeros([BLOCK_SIZE], dtype=tl.float32)
    for off in range(0, N, BLOCK_SIZE):
        cols = off + tl.arange(0, BLOCK_SIZE)
        x = tl.load(X + cols, mask=cols < N, other=0.).to(tl.float32)
        x = tl.where(cols < N, x - mean, 0.)
        _var += x * x
    rstd = 1 / tl.sqrt(tl.sum(_var, axis=0) / N + eps)
    tl.store(Mean + row, mean)
    for off in range(0, N, BLOCK_SIZE):
        cols = off + tl.arange(0, BLOCK_SIZE)
        mask = cols < N
        w = tl.load(W + cols, mask=mask)
        x = tl.load(X + cols, mask=mask, other=0.).to(tl.float32)
        y = (x - mean) * rstd * w
        if HAS_BIAS:
            y += tl.load(B + cols, mask=mask)
        tl.store(Y + cols, y, mask=mask)


def run(x, w, b):
    M, N = x.shape
    y = torch.empty_like(x)
    mean = torch.empty(M)
    ln[(M,)](x, y, w, b, mean, N, 1e-5, HAS_BIAS=True, BLOCK_SIZE=64)
    return y + 0 * mean[:, None]
"""
)

UNMASKED = (
    HEADER
    + """
@triton.jit
def scale_rows(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = 0.0
    for start in range(0, n, BLOCK):
        x = tl.load(x_ptr + row * n + start + tl.arange(0, BLOCK))
        total += tl.sum(x)
    for start in range(0, n, BLOCK):
        x = tl.load(x_ptr + row * n + start + tl.arange(0, BLOCK))
        tl.store(out_ptr + row * n + start + tl.arange(0, BLOCK), x / total)


def run(x):
    out = torch.empty_like(x)
    scale_rows[(x.size(0),)](x, out, x.size(1), BLOCK=64)
    return out
"""
)

# The lanes beyond the row hold (0 - mean) squared: right only if there are none.
LANES_COUNT = UNMASKED.replace("total += tl.sum(x)", "total += tl.sum((x - 1.0) * (x - 1.0))")

SHAPES = ("3,1000", "2,1", "2,1500", "1,1024", "2,63")
"""Odd rows, one column, rows beyond the limit of 1024 (they take the loops), a power of two."""


def _rows(shape: str) -> str:
    return f"torch.randn({shape}, generator=g)"


def _width(shape: str) -> str:
    return f"torch.randn({shape.split(',')[1]}, generator=g)"


LAYER_NORM = "torch.nn.functional.layer_norm(x[0], (x[0].shape[-1],), x[1], x[2])"
RMS_NORM = "torch.nn.functional.rms_norm(x[0], (x[0].shape[-1],), x[1], 1e-6)"


def _example(name: str) -> str:
    return (EXAMPLES / f"{name}.py").read_text()


def _candidates() -> list[tuple[str, str, str, int, str]]:
    """``(name, text, entry, number of vectors behind the matrix, expected)``."""
    x, w, b = tensor("x", "f32", 64, 1000), tensor("w", "f32", 1000), tensor("b", "f32", 1000)
    softmax = "torch.softmax(x[0], dim=-1)"
    gathered = [("softmax", softmax, 0), ("layer_norm", LAYER_NORM, 2), ("rms_norm", RMS_NORM, 1),
                ("cumsum", "torch.cumsum(x[0], 1)", 0), ("row_sum", "x[0].sum(1)", 0)]  # fmt: skip
    found = [
        (name, rewritten(RULE, _example(name), x, *(w, b)[:vectors]), name, vectors, expected)
        for name, expected, vectors in gathered
    ]
    found += [
        ("by block number", rewritten(RULE, BY_BLOCK_NUMBER, x), "run", 0, softmax),
        ("pointer increments", rewritten(RULE, POINTER_INCREMENTS, x, w), "run", 1, RMS_NORM),
        ("static branch", rewritten(RULE, STATIC_BRANCH, x, w, b), "run", 2, LAYER_NORM),
    ]
    return found


def test_results_stay_right_on_odd_short_and_long_rows(tmp_path: Path):
    cases = [
        RunCase(f"{name} {shape}", text, entry, (_rows(shape), *[_width(shape)] * vectors), want)
        for name, text, entry, vectors, want in _candidates()
        for shape in SHAPES
    ]
    logits = tensor("logits", "f32", 64, 1000), tensor("targets", "i64", 64)
    loss = rewritten(RULE, _example("cross_entropy"), *logits)
    cases += [
        RunCase(
            f"cross_entropy {shape}", loss, "cross_entropy",
            (_rows(shape), f"torch.zeros({shape.split(',')[0]}, dtype=torch.int64)"),
            "torch.nn.functional.cross_entropy(x[0], x[1], reduction='none')",
        )
        for shape in SHAPES
    ]  # fmt: skip
    powers = rewritten(RULE, UNMASKED, tensor("x", "f32", 64, 1024))
    cases += [
        RunCase(f"unmasked {shape}", powers, "run", (_rows(shape),), "x[0] / x[0].sum(1, True)")
        for shape in ("2,1024", "2,192", "2,2048", "3,64")
    ]
    counted = rewritten(RULE, LANES_COUNT, tensor("x", "f32", 64, 1024))
    want = "x[0] / ((x[0] - 1) ** 2).sum(1, True)"
    cases += [
        RunCase(f"lanes count {shape}", counted, "run", (_rows(shape),), want)
        for shape in ("2,1024", "2,192")
    ]
    assert interpret(cases, tmp_path) == {}


def test_candidates_compile_for_a_gpu(tmp_path: Path):
    cases = [
        RunCase(f"{name} {shape}", text, entry, (_rows(shape), *[_width(shape)] * vectors), "")
        for name, text, entry, vectors, _ in _candidates()
        if name in ("softmax", "pointer increments", "static branch")
        for shape in ("3,1000", "2,1500")
    ]
    assert compile_native(cases, tmp_path) == {}


@pytest.mark.parametrize("name", ["softmax", "layer_norm", "rms_norm"])
def test_the_row_is_loaded_once(name: str):
    text = rewritten(RULE, _example(name), tensor("x", "f32", 64, 1000), tensor("w", "f32", 1000))
    one_block = text.split("if ONE_BLOCK > 0:")[1].split("else:")[0]
    loads = [line for line in one_block.splitlines() if "tl.load(x" in line]
    assert len(loads) == 1
    assert " for " not in one_block


def test_loads_with_another_filler_are_merged_without_a_second_load():
    text = rewritten(RULE, POINTER_INCREMENTS, tensor("x", "f32", 64, 1000), tensor("w", "f32", 9))
    one_block = text.split("if ONE_BLOCK > 0:")[1].split("else:")[0]
    assert one_block.count("tl.load(ptr") == 1
    assert "ptr +=" not in one_block


def test_the_limit_is_the_longest_row_of_the_workload():
    text = rewritten(RULE, BY_BLOCK_NUMBER, tensor("x", "f32", 64, 5000))
    assert "triton.next_power_of_2(cols) if cols <= 8192 else 0" in text


def test_without_neutral_lanes_only_powers_of_two_take_the_block():
    text = rewritten(RULE, UNMASKED, tensor("x", "f32", 64, 1024))
    assert "x.size(1) == triton.next_power_of_2(x.size(1)) <= 1024" in text
    assert offered(RULE, UNMASKED, tensor("x", "f32", 64, 1000)) == ()


def test_a_copy_is_exact_and_a_sum_is_not():
    x, ids = tensor("table", "f32", 64, 1000), tensor("ids", "i64", 10)
    (copy,) = offered(RULE, _example("gather"), x, ids)
    (total,) = offered(RULE, _example("row_sum"), tensor("x", "f32", 64, 1000))
    assert copy.numerics is Numerics.EXACT
    assert total.numerics is Numerics.REASSOCIATES


def test_warps_are_suggested_by_row_length():
    def first(columns: int) -> int:
        (rewrite,) = offered(RULE, _example("softmax"), tensor("x", "f32", 64, columns))
        return int(rewrite.configurations[0][0].value)

    assert first(512) < first(4096) < first(32768)


def test_an_autotuned_kernel_keeps_its_list():
    head = '@triton.autotune([triton.Config({"B": 64}), triton.Config({"B": 256})], key=["N"])\n'
    text = BY_BLOCK_NUMBER.replace("@triton.jit", head + "@triton.jit")
    text = text.replace("cols, B)", "cols)").replace("    B = 64\n", "")
    after = rewritten(RULE, text, tensor("x", "f32", 64, 1000))
    assert head in after
    assert "sm[(rows,)](x, out, x.stride(0), cols, ONE_BLOCK=ONE_BLOCK)" in after


def test_accumulators_that_begin_alike_stay_apart():
    text = STATIC_BRANCH.replace("tl.zeros([BLOCK_SIZE], dtype=tl.float32)", "0.0").replace(
        "_mean += a", "_mean += tl.sum(a)"
    )
    text = text.replace("_var += x * x", "_var += tl.sum(x * x)").replace(
        "tl.sum(_mean, axis=0)", "_mean"
    )
    text = text.replace("tl.sum(_var, axis=0)", "_var")
    vectors = tensor("w", "f32", 1000), tensor("b", "f32", 1000)
    one_block = rewritten(RULE, text, tensor("x", "f32", 64, 1000), *vectors).split("else:")[0]
    assert "_mean = 0.0" in one_block
    assert "_var = 0.0" in one_block


def test_long_lists_go_on_below_their_first_item():
    text = rewritten(RULE, _example("rms_norm"), tensor("x", "f32", 64, 99), tensor("w", "f32", 99))
    assert "BLOCK: tl.constexpr,\n                    ONE_BLOCK: tl.constexpr):" in text
    assert max(len(line) for line in text.splitlines()) <= 100


def test_comments_in_the_loops_stay_in_the_loops():
    text = rewritten(RULE, POINTER_INCREMENTS, tensor("x", "f32", 64, 1000), tensor("w", "f32", 9))
    assert text.count("# squares in float32") == 1


FIRST_LOOP = """    for start in range(0, n, BLOCK):
        x = tl.load(x_ptr + row * n + start + tl.arange(0, BLOCK))
        total += tl.sum(x)
"""
NESTED = """    for again in range(0, 3):
        for start in range(0, n, BLOCK):
            total += tl.sum(tl.load(x_ptr + start + tl.arange(0, BLOCK)))
"""
HIDDEN = ("(x, out, x.size(1), BLOCK=64)", "(*[x, out, x.size(1)], BLOCK=64)")
READ_BOUND = "    n = tl.load(x_ptr).to(tl.int32)\n    total = 0.0"

SECOND_LOOP = """    for start in range(0, n, BLOCK):
        x = tl.load(x_ptr + row * n + start + tl.arange(0, BLOCK))
        tl.store"""
BY_NUMBER = SECOND_LOOP.replace("start in range(0, n, BLOCK)", "k in range(tl.cdiv(n, BLOCK))")


def _second_loop(body: str, header: str = SECOND_LOOP.splitlines()[0]) -> str:
    first, _, last = UNMASKED.partition(SECOND_LOOP)
    rest = last.partition("\n")[2]
    return first + header + "\n" + body + "\n" + rest


GROUPS = {
    "elements divided by the maximum of their block": _second_loop(
        "        x = tl.load(x_ptr + row * n + start + tl.arange(0, BLOCK))\n"
        "        top = tl.max(x)\n"
        "        tl.store(out_ptr + row * n + start + tl.arange(0, BLOCK), x / top)"
    ),
    "a scale for each block number": _second_loop(
        "        x = tl.load(x_ptr + row * n + k * BLOCK + tl.arange(0, BLOCK))\n"
        "        x = x * tl.load(x_ptr + k)\n"
        "        tl.store(out_ptr + row * n + k * BLOCK + tl.arange(0, BLOCK), x)",
        BY_NUMBER.splitlines()[0],
    ),
    "a scale at the start of each block": _second_loop(
        "        x = tl.load(x_ptr + row * n + start + tl.arange(0, BLOCK))\n"
        "        scale = tl.load(x_ptr + start // 64)\n"
        "        tl.store(out_ptr + row * n + start + tl.arange(0, BLOCK), x * scale)"
    ),
    "a pointer to scales that advances by one": _second_loop(
        "        x = tl.load(x_ptr + row * n + start + tl.arange(0, BLOCK))\n"
        "        tl.store(out_ptr + row * n + start + tl.arange(0, BLOCK), x * tl.load(x_ptr))\n"
        "        x_ptr += 1"
    ),
}


@pytest.mark.parametrize("text", GROUPS.values(), ids=GROUPS.keys())
def test_blocks_with_a_meaning_of_their_own_keep_their_size(text: str):
    assert offered(RULE, text, tensor("x", "f32", 64, 1024)) == ()


def test_a_start_with_a_name_of_its_own_is_understood():
    text = _second_loop(
        "        begin = tl.multiple_of(start, BLOCK)\n"
        "        at = row * n + begin\n"
        "        x = tl.load(x_ptr + at + tl.arange(0, BLOCK))\n"
        "        tl.store(out_ptr + at + tl.arange(0, BLOCK), x / total)"
    )
    one_block = rewritten(RULE, text, tensor("x", "f32", 64, 1024)).split("else:")[0]
    assert "multiple_of" not in one_block


REFUSED = {
    "several programs for a row": UNMASKED.replace("program_id(0)", "program_id(0) * BLOCK"),
    "a loop that starts later": UNMASKED.replace("range(0, n, BLOCK)", "range(1, n, BLOCK)"),
    "a bound that is read from memory": UNMASKED.replace("    total = 0.0", READ_BOUND),
    "the loop variable is used behind it": UNMASKED.replace("x / total)", "x)").replace(
        FIRST_LOOP, FIRST_LOOP + "    tl.store(out_ptr, start)\n"
    ),
    "the arguments of the launch are hidden": UNMASKED.replace(*HIDDEN),
    "a length that costs": UNMASKED.replace("x.size(1), B", "len(x.tolist()[0]), B"),
    "a loop inside another": UNMASKED.replace(FIRST_LOOP, NESTED),
}


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED.keys())
def test_what_is_not_understood_is_left_alone(text: str):
    assert text != UNMASKED
    assert offered(RULE, text, tensor("x", "f32", 64, 1024)) == ()


@pytest.mark.parametrize("name", ["matmul", "swiglu", "histogram", "rope"])
def test_other_kernels_are_left_alone(name: str):
    assert offered(RULE, _example(name), tensor("x", "f32", 64, 1024)) == ()


def test_rows_that_no_block_can_hold_are_left_alone():
    assert offered(RULE, _example("softmax"), tensor("x", "f32", 4, 200_000)) == ()
