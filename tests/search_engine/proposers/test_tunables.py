"""Finding meta-parameters in every spelling, and changing them inside the unit only."""

import ast
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from proposers.sources import HEADER, SPELLINGS, context, parsed, scale
from search_engine.domain.candidate import Assignment
from search_engine.proposers.configurations import Configurations
from search_engine.proposers.tunable_types import Purpose, TunableKind
from search_engine.proposers.tunables import UnknownTunableError, assign, find_tunables

EXAMPLES = Path(__file__).parents[3] / "examples"


def by_name(text, kernel=None):
    return {tunable.name: tunable for tunable in find_tunables(*parsed(text, kernel))}


def assigned(text, kernel=None, **values):
    module, unit = parsed(text, kernel)
    return assign(module, unit, [Assignment(k, str(v)) for k, v in values.items()])


def outside_unit(text, kernel=None):
    """What stands outside the spans of the unit."""
    _, unit = parsed(text, kernel)
    data = text.encode()
    kept, position = [], 0
    for span in unit.spans:
        kept.append(data[position : span.start])
        position = max(position, span.end)
    return [*kept, data[position:]]


@pytest.mark.parametrize("text", SPELLINGS.values(), ids=SPELLINGS.keys())
class TestSpellings:
    def test_block_and_options_are_found(self, text):
        found = by_name(text)
        assert found["BLOCK"].purpose is Purpose.TILE
        assert {64, 512} <= set(found["BLOCK"].ladder)
        assert found["num_warps"].ladder == (1, 2, 4, 8, 16, 32)

    def test_a_new_value_reaches_the_text_and_only_the_unit(self, text):
        new = assigned(text, BLOCK=512, num_warps=2, num_stages=1)
        ast.parse(new)
        assert "512" in new
        assert "num_warps=2" in new
        assert "num_stages=1" in new
        assert outside_unit(new) == outside_unit(text)
        again = by_name(new)
        assert again["num_warps"].value == "2"

    def test_assigning_twice_is_assigning_once(self, text):
        once = assigned(text, BLOCK=512)
        assert assigned(once, BLOCK=512) == once


def test_the_grid_follows_a_number_that_it_repeats():
    new = assigned(SPELLINGS["number in the grid"], BLOCK=1024)
    assert "((n + (1024 - 1)) // 1024,)" in new
    new = assigned(SPELLINGS["number in a local grid"], BLOCK=1024)
    assert "triton.cdiv(n, 1024)" in new
    assert "out, n, 1024)" in new


def test_a_module_constant_is_shadowed_not_edited():
    text = SPELLINGS["module constant"]
    new = assigned(text, BLOCK=256)
    assert "\nBLOCK = 128\n" in new
    assert '"""\n    BLOCK = 256\n' in new


def test_pinning_keeps_key_and_hooks_of_the_autotuner():
    text = SPELLINGS["autotune"].replace(
        'key=["n"]', 'key=["n"], reset_to_zero=["out_ptr"], restore_value=["x_ptr"]'
    )
    new = assigned(text, BLOCK=1024)
    assert '[triton.Config({"BLOCK": 1024}, num_warps=4)], key=["n"], reset_to_zero' in new
    assert 'restore_value=["x_ptr"]' in new


def test_a_pre_hook_of_the_configuration_is_kept():
    text = SPELLINGS["autotune"].replace("num_warps=4)", "num_warps=4, pre_hook=clear)")
    assert "num_stages=2, pre_hook=clear)]" in assigned(text, num_stages=2)


def test_grid_axes_tell_equal_numbers_apart():
    text = (EXAMPLES / "matmul.py").read_text()
    text = text.replace("block_", "BLOCK_")
    found = by_name(text)
    new = assigned(text, BLOCK_M=128, BLOCK_N=256)
    assert {"BLOCK_M", "BLOCK_N", "BLOCK_K"} <= set(found)
    assert new.count("256") >= 2


MATMUL = """
@triton.jit
def k(a_ptr, c_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    pid = tl.program_id(0)
    width = tl.cdiv(N, BN)
    rows = (pid // width) * BM + tl.arange(0, BM)
    cols = (pid % width) * BN + tl.arange(0, BN)
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    x = tl.load(a_ptr + rows[:, None] * N + cols[None, :], mask=mask)
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], x, mask=mask)


def f(a):
    c = torch.empty_like(a)
    M, N = a.shape
    k[(triton.cdiv(M, 32) * triton.cdiv(N, 32),)](a, c, M, N, BM=32, BN=32)
    return c
"""


def test_dividends_tell_equal_numbers_of_one_axis_apart():
    # BN divides N in the kernel; nothing says what BM divides, so BM stays.
    found = by_name(HEADER + MATMUL)
    assert found["BN"].ladder
    assert found["BM"].ladder == ()
    assert "triton.cdiv(M, 32) * triton.cdiv(N, 64)" in assigned(HEADER + MATMUL, BN=64)


class TestLeftAlone:
    def test_a_block_that_covers_the_row(self):
        text = HEADER + ROW.format(value="1024")
        assert by_name(text)["BLOCK"].purpose is Purpose.COVER
        assert by_name(text)["BLOCK"].ladder == ()

    def test_a_block_computed_from_the_row(self):
        assert "BLOCK" not in by_name(HEADER + ROW.format(value="triton.next_power_of_2(n)"))

    def test_flags_and_dimensions(self):
        text = HEADER + ROW.format(value="1024").replace(
            "BLOCK: tl.constexpr", "BLOCK: tl.constexpr, CAUSAL: tl.constexpr = True"
        ).replace("row * n", "row * n * CAUSAL")
        assert "CAUSAL" not in by_name(text)

    def test_an_unmasked_block_may_only_shrink(self):
        text = SPELLINGS["constant"].replace(", mask=mask", "")
        assert max(by_name(text)["BLOCK"].ladder) == 128
        assert 64 in by_name(text)["BLOCK"].ladder

    def test_rows_that_wrap_around_need_no_mask(self):
        text = SPELLINGS["constant"].replace("tl.arange(0, BLOCK)", "tl.arange(0, BLOCK)) % n")
        text = text.replace("tl.program_id(0) *", "(tl.program_id(0) *").replace(", mask=mask", "")
        assert 512 in by_name(text)["BLOCK"].ladder

    def test_a_workspace_that_repeats_the_number(self):
        text = scale(
            "parts = torch.empty(triton.cdiv(n, 128))\n"
            "scale_kernel[(triton.cdiv(n, 128),)](x, out, n, BLOCK=128)"
        )
        assert by_name(text)["BLOCK"].ladder == ()

    def test_hidden_arguments(self):
        text = scale("scale_kernel[(triton.cdiv(n, 128),)](x, out, n, **options)")
        assert by_name(text) == {}

    def test_a_constant_that_another_function_of_the_grid_reads(self):
        text = scale(
            "scale_kernel[blocks(n)](x, out, n, BLOCK)",
            before="BLOCK = 128\n\n\ndef blocks(n):\n    return (triton.cdiv(n, BLOCK),)\n\n",
        )
        assert "BLOCK" not in by_name(text)

    def test_stages_of_a_kernel_without_a_loop(self):
        assert by_name(SPELLINGS["constant"])["num_stages"].ladder == ()


ROW = """
@triton.jit
def k(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n
    x = tl.load(x_ptr + row * n + cols, mask=mask)
    tl.store(out_ptr + row * n + cols, x + 1, mask=mask)


def f(x):
    out = torch.empty_like(x)
    m, n = x.shape
    BLOCK = {value}
    k[(m,)](x, out, n, BLOCK)
    return out
"""


def test_siblings_are_named_with_their_kernel():
    text = (EXAMPLES / "tuned" / "column_sum.py").read_text()
    found = by_name(text, "partial_sum_kernel")
    assert "combine_kernel.BLOCK_N" in found
    new = assigned(text, "partial_sum_kernel", **{"combine_kernel.BLOCK_N": 64})
    assert outside_unit(new, "partial_sum_kernel") == outside_unit(text, "partial_sum_kernel")


def test_mistakes_are_named():
    module, unit = parsed(SPELLINGS["constant"])
    with pytest.raises(UnknownTunableError, match=r"'BLOK'.*BLOCK, num_warps"):
        assign(module, unit, [Assignment("BLOK", "64")])
    with pytest.raises(ValueError, match="no expression"):
        assign(module, unit, [Assignment("BLOCK", "64 +")])


def test_kinds_tell_where_a_value_stands():
    kinds = {name: by_name(text)["BLOCK"].kind for name, text in SPELLINGS.items()}
    assert kinds["constant"] is TunableKind.ENTRY_CONSTANT
    assert kinds["keyword and lambda"] is TunableKind.LAUNCH_ARGUMENT
    assert kinds["signature default"] is TunableKind.SIGNATURE_DEFAULT
    assert kinds["entry default"] is TunableKind.ENTRY_DEFAULT
    assert kinds["module constant"] is TunableKind.MODULE_CONSTANT
    assert kinds["autotune by comprehension"] is TunableKind.CONFIG


def test_changed_texts_still_compute_the_right_result(tmp_path):
    """One interpreter process for every spelling and every example."""
    jobs = []
    for name, text in SPELLINGS.items():
        new = assigned(text, BLOCK=32, num_warps=8)
        jobs.append((write(tmp_path, f"s{len(jobs)}", new), name, "scale", [[1000]], "2 * x0"))
    for path, entry, shapes, expected in example_jobs():
        made = Configurations(8).propose(
            context(path.read_text(), {f"x{i}": tuple(s) for i, s in enumerate(shapes)}),
            random.Random(3),
        )
        assert made
        for candidate in made[:2]:
            file = write(tmp_path, f"e{len(jobs)}", candidate.text)
            jobs.append((file, f"{path.stem}: {candidate.title}", entry, shapes, expected))
    (tmp_path / "jobs.json").write_text(json.dumps(jobs))
    script = tmp_path / "run_jobs.py"
    script.write_text(RUNNER)
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "jobs.json")],
        env={**os.environ, "TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    assert json.loads(done.stdout) == {"checked": len(jobs), "wrong": []}


def example_jobs():
    norm = "torch.nn.functional"
    table = {
        "softmax": ([[3, 300]], "torch.softmax(x0, -1)"),
        "row_sum": ([[3, 300]], "x0.sum(1)"),
        "column_sum": ([[70, 9]], "x0.sum(0)"),
        "cumsum": ([[3, 300]], "x0.cumsum(1)"),
        "transpose": ([[9, 70]], "x0.T"),
        "swiglu": ([[5, 300], [5, 300]], f"{norm}.silu(x0) * x1"),
        "matmul": ([[70, 50], [50, 90]], "x0 @ x1"),
        "rms_norm": ([[3, 300], [300]], f"{norm}.rms_norm(x0, (300,), x1, 1e-6)"),
        "layer_norm": ([[3, 300], [300], [300]], f"{norm}.layer_norm(x0, (300,), x1, x2, 1e-5)"),
    }
    for folder in (EXAMPLES, EXAMPLES / "tuned"):
        for name, (shapes, expected) in table.items():
            if (folder / f"{name}.py").exists():
                yield folder / f"{name}.py", name, shapes, expected


def write(folder, name, text):
    path = folder / f"{name}.py"
    path.write_text(text)
    return str(path)


RUNNER = """
import importlib.util, json, sys
import torch
from triton.runtime import interpreter

# numpy 2.4 no longer turns arrays of one element into integers, as Triton 3.6 expects of it.
original = interpreter._patch_lang_tensor

def patched(tensor, scope):
    original(tensor, scope)
    scope.set_attr(tensor, "__index__", lambda self: self.handle.data.item())

interpreter._patch_lang_tensor = patched
jobs = json.load(open(sys.argv[1]))
wrong = []
torch.manual_seed(0)
for index, (path, title, entry, shapes, expected) in enumerate(jobs):
    spec = importlib.util.spec_from_file_location(f"case{index}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    inputs = [torch.randn(shape) for shape in shapes]
    try:
        got = getattr(module, entry)(*inputs)
        names = {f"x{i}": value for i, value in enumerate(inputs)}
        right = torch.allclose(got, eval(expected, {"torch": torch, **names}), 1e-3, 1e-3)
    except Exception as error:
        right, title = False, f"{title}: {error!r}"
    if not right:
        wrong.append(title)
print(json.dumps({"checked": len(jobs), "wrong": wrong}))
"""
