"""The check without a device: right kernels pass, wrong ones are caught, bounds are watched.

Functions are interpreted from their decoration on, so the jobs run in one process of their own:
this file is also its program.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

HEADER = """\
import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, x_stride, out_stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    top = -float("inf")
    for start in range(0, n_cols, BLOCK):
        mask = start + cols < n_cols
        x = tl.load(x_ptr + row * x_stride + start + cols, mask=mask, other=-float("inf"))
        top = tl.maximum(top, tl.max(x.to(tl.float32), axis=0))
    total = 0.0
    for start in range(0, n_cols, BLOCK):
        mask = start + cols < n_cols
        x = tl.load(x_ptr + row * x_stride + start + cols, mask=mask, other=-float("inf"))
        total += tl.sum(tl.exp(x.to(tl.float32) - top), axis=0)
    for start in range(0, n_cols, BLOCK):
        mask = start + cols < n_cols
        x = tl.load(x_ptr + row * x_stride + start + cols, mask=mask, other=0.0)
        y = tl.exp(x.to(tl.float32) - top) / total
        y = y.to(out_ptr.dtype.element_ty)
        tl.store(out_ptr + row * out_stride + start + cols, y, mask=mask)


def run(x):
    out = torch.empty_like(x)
    softmax_kernel[(x.shape[0],)](x, out, x.stride(0), out.stride(0), x.shape[1], BLOCK=64)
    return out
"""
DOUBLE = """\
import torch
import triton
import triton.language as tl


@triton.jit
def double_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.store(out_ptr + at, x * 2, mask=at < n)


def run(x):
    out = torch.empty_like(x)
    n = x.numel()
    double_kernel[(triton.cdiv(n, 128),)](x, out, n, BLOCK=128)
    return out
"""
ENTRY = "    out = torch.empty_like(x)\n"
BASELINES = {
    "raises": ((ENTRY, "    raise ValueError('no way')\n" + ENTRY), "x=f32[1024,1024]", "x * 2"),
    "raises at a large size": (
        (ENTRY, "    raise ValueError('no way')\n" + ENTRY), "x=f32[4096,1024]", "x * 2",
    ),
    "asserts a large size": (
        (ENTRY, "    assert x.shape[0] == 4096\n" + ENTRY), "x=f32[4096,1024]", "x * 2",
    ),
    "name missing in the kernel": (("x * 2,", "x * lost,"), "x=f32[1024]", "x * 2"),
    "out of bounds": ((", mask=at < n)", ")"), "x=f32[200]", None),
    "not implemented": (
        (ENTRY, "    raise NotImplementedError('odd')\n" + ENTRY), "x=f32[8]", None,
    ),
    "reference raises": (("", ""), "x=f32[1024,1024]", "torch.nosuch(x)"),
    "no reference": (("", ""), "x=f32[1024,1024]", None),
    "no reference, one size only": (
        (ENTRY, "    assert x.numel() == 1 << 20\n" + ENTRY), "x=f32[1024,1024]", None,
    ),
    "no reference, tail unwritten": (
        ("triton.cdiv(n, 128)", "max(n // 128, 1)"), "x=f32[1024,1024]", None,
    ),
    "no reference, constant": (("x * 2,", "x * 0 + at,"), "x=f32[1024,1024]", None),
    "random": (("return out", "return out + torch.rand(1)"), "x=f32[1024,1024]", "x * 2"),
    "random, no reference": (("return out", "return out + torch.rand(1)"), "x=f32[512]", None),
    "random rarely": (
        ("return out", "run.calls = getattr(run, 'calls', 0) + 1\n"
         "    return out + torch.rand(1) * (run.calls > 2)"), "x=f32[512]", "x * 2",
    ),
    "declared size ran": (("", ""), "x=f32[300]", "x * 2"),
}  # fmt: skip
"""An edit of DOUBLE, a workload and a reference, each interpreted as a baseline."""
LAST_LOOP = """    for start in range(0, n_cols, BLOCK):
        mask = start + cols < n_cols
        x = tl.load(x_ptr + row * x_stride + start + cols, mask=mask, other=0.0)
"""
RIGHT = {
    "same": (),
    "larger block": (("BLOCK=64", "BLOCK=256"),),
    "base two": (
        ("tl.exp(x.to(tl.float32) - top)", "tl.exp2((x.to(tl.float32) - top) * 1.44269504)"),
    ),
    "device checks": (("    out = torch", "    assert x.is_cuda\n    out = torch"),),
}
WRONG = {
    "padding counted": (("other=-float(\"inf\"))\n        total", "other=0.0)\n        total"),),
    "no maximum": ((" - top", ""),),
    "last block dropped": ((LAST_LOOP, LAST_LOOP.replace("n_cols, B", "n_cols - BLOCK, B")),),
    "wrong row": (("out_ptr + row *", "out_ptr + (row // 2) *"),),
    "no accumulation": (("total += tl.sum", "total = tl.sum"),),
}  # fmt: skip
ATOMICS = (
    HEADER
    + """

@triton.jit
def count_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0)
    tl.atomic_add(out_ptr + x, 1, mask=at < n)


def count(x):
    out = torch.zeros(16, dtype=torch.int32, device=x.device)
    count_kernel[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)
    return out
"""
)


def versions() -> dict[str, tuple[str, str]]:
    """Text and entry of each candidate."""
    made = {}
    for name, edits in {**RIGHT, **WRONG}.items():
        text = HEADER
        for old, new in edits:
            assert old in text, name
            text = text.replace(old, new)
        made[name] = text, "run"
    load = "x = tl.load(x_ptr + row * x_stride + start + cols, mask=mask, other=0.0)"
    unmasked = HEADER.replace(load, "x = tl.load(x_ptr + row * x_stride + start + cols)")
    made["load out of bounds"] = unmasked, "run"
    store = HEADER.replace("cols, y, mask=mask)", "cols, y)")
    made["store out of bounds"] = store, "run"
    made["narrow body"] = (
        HEADER.replace("y = tl.exp(", "y = tl.exp(x.to(tl.bfloat16) * 0 + "),
        "run",
    )
    made["unrelated bfloat16"] = HEADER + "\n\ndef other():\n    return tl.bfloat16\n", "run"
    made["raises"] = (
        HEADER.replace("    out = torch", "    raise KeyError('lost')\n    out = torch"),
        "run",
    )
    made["counts"] = ATOMICS, "count"
    made["atomic out of bounds"] = (
        ATOMICS.replace("out_ptr + x, 1, mask", "out_ptr + x + 1, 1, mask"),
        "count",
    )
    return made


def _described(case, reference):
    from search_engine.domain.workload import Reference
    from tests.search_engine.worker.versions import workload

    if reference is None:
        return workload(case)
    return workload(case, references=(Reference(reference, None, 7),))


def _serve(folder: Path) -> None:
    from search_engine.domain.codec import encode
    from search_engine.domain.job import InterpretJob
    from search_engine.worker.interpreter import interpret
    from tests.search_engine.worker.versions import source, workload

    softmax = workload("x=f32[4096,1000]", reference="torch.softmax(x, -1)")
    counting = workload("x=i32[100000]{0..15}", reference="torch.bincount(x, minlength=16)")
    for name, (edit, case, reference) in BASELINES.items():
        version = source(folder, DOUBLE.replace(*edit) if edit[0] else DOUBLE)
        reply = interpret(InterpretJob(version, version, _described(case, reference), 3))
        print(json.dumps([f"baseline: {name}", type(reply).__name__, encode(reply)]), flush=True)
    for name, (text, entry) in versions().items():
        described, base = (softmax, HEADER) if entry == "run" else (counting, ATOMICS)
        baseline, candidate = source(folder, base, entry), source(folder, text, entry)
        reply = interpret(InterpretJob(baseline, candidate, described, 3))
        print(json.dumps([name, type(reply).__name__, encode(reply)]), flush=True)
    bf16 = workload("x=bf16[4096,1000]", reference="torch.softmax(x, -1)")
    version = source(folder, HEADER)
    reply = interpret(InterpretJob(version, version, bf16, 3))
    print(json.dumps(["bf16 input", type(reply).__name__, encode(reply)]))
    wrong = workload("x=f32[4096,1000]", reference="torch.softmax(x, 0)")
    reply = interpret(InterpretJob(version, version, wrong, 3))
    print(json.dumps(["wrong baseline", type(reply).__name__, encode(reply)]))


@pytest.fixture(scope="module")
def replies(tmp_path_factory):
    pytest.importorskip("triton")
    folder = tmp_path_factory.mktemp("versions")
    environment = {
        **os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "",
        "PYTHONPATH": str(ROOT),
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, __file__, str(folder)],
        env=environment, capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    return {name: (kind, reply) for name, kind, reply in lines}


@pytest.mark.parametrize("name", [*RIGHT, "unrelated bfloat16", "counts"])
def test_right_kernels_pass(name, replies):
    kind, reply = replies[name]
    assert kind == "CheckReply", reply
    assert reply["mismatch"] is None
    assert len(reply["comparisons"]) >= 2
    assert all(c["error"] <= 1 for c in reply["comparisons"])


@pytest.mark.parametrize("name", WRONG)
def test_wrong_kernels_are_caught(name, replies):
    kind, reply = replies[name]
    assert kind == "CheckReply", reply
    assert reply["mismatch"] is not None


@pytest.mark.parametrize(
    ("name", "access"),
    [
        ("load out of bounds", "load"),
        ("store out of bounds", "store"),
        ("atomic out of bounds", "atomic"),
    ],
)
def test_accesses_out_of_bounds_are_refused_with_their_line(name, access, replies):
    kind, reply = replies[name]
    assert kind == "Refusal" and reply["kind"] == "runtime", reply
    assert f"{access} out of bounds" in reply["message"]
    text = versions()[name][0].splitlines()
    assert f"tl.{'atomic_add' if access == 'atomic' else access}(" in text[reply["line"]]


def test_what_the_interpreter_cannot_tell_is_refused(replies):
    kind, reply = replies["narrow body"]
    assert kind == "Refusal" and reply["kind"] == "unsupported"
    assert "tl.bfloat16" in reply["message"]
    assert "cannot tell" not in reply["message"], "who shows the refusal says so"


def test_a_candidate_that_raises_is_refused_with_its_line(replies):
    kind, reply = replies["raises"]
    assert kind == "Refusal" and reply["kind"] == "runtime" and "lost" in reply["message"]
    assert "raise KeyError" in versions()["raises"][0].splitlines()[reply["line"]]


def test_a_baseline_that_is_wrong_itself_is_refused(replies):
    kind, reply = replies["wrong baseline"]
    assert kind == "Refusal" and reply["kind"] == "reference", reply


@pytest.mark.parametrize(
    ("name", "message", "line"),
    [
        ("raises", "your kernel raises ValueError: no way", "raise ValueError"),
        ("raises at a large size", "your kernel raises ValueError: no way", "raise ValueError"),
        ("name missing in the kernel", "raises NameError", "x * lost"),
        ("out of bounds", "store out of bounds", "tl.store"),
        ("not implemented", "raises NotImplementedError: odd", "raise NotImpl"),
    ],
)
def test_a_baseline_that_fails_is_refused_with_its_line(name, message, line, replies):
    kind, reply = replies[f"baseline: {name}"]
    assert kind == "Refusal" and reply["kind"] == "runtime", reply
    assert message in reply["message"]
    edit = BASELINES[name][0]
    assert line in DOUBLE.replace(*edit).splitlines()[reply["line"]]


def test_an_assertion_about_a_size_that_is_too_large_to_run_is_no_failure(replies):
    kind, reply = replies["baseline: asserts a large size"]
    assert kind == "Refusal" and reply["kind"] == "unsupported", reply
    assert "declare a case of at most 65536 elements" in reply["message"]


def test_a_reference_that_raises_is_refused_with_its_text_and_line(replies):
    kind, reply = replies["baseline: reference raises"]
    assert kind == "Refusal" and reply["kind"] == "reference", reply
    assert "`torch.nosuch(x)`" in reply["message"] and reply["line"] == 7


def test_without_a_reference_sizes_shrink_if_the_baseline_allows_it(replies):
    kind, reply = replies["baseline: no reference"]
    assert kind == "CheckReply" and reply["mismatch"] is None, reply
    assert reply["comparisons"] and not reply["independent_reference"]
    assert any(note.startswith("the declared sizes") for note in reply["not_checked"])
    kind, reply = replies["baseline: no reference, one size only"]
    assert kind == "Refusal" and reply["kind"] == "unsupported", reply
    assert "declare a reference or a case of at most 65536 elements" in reply["message"]
    kind, reply = replies["baseline: no reference, constant"]
    assert kind == "Refusal" and reply["kind"] == "reference", reply
    assert "does not depend on the inputs" in reply["message"]


def test_shrunk_sizes_that_leave_elements_unwritten_are_not_used(replies):
    kind, reply = replies["baseline: no reference, tail unwritten"]
    assert kind == "CheckReply", reply
    assert {c["case"] for c in reply["comparisons"]} == {"x=f32[128,128]", "x=f32[64,64]"}


@pytest.mark.parametrize("name", ["random", "random, no reference", "random rarely"])
def test_a_baseline_that_does_not_repeat_itself_is_named_so(name, replies):
    kind, reply = replies[f"baseline: {name}"]
    assert kind == "Refusal" and reply["kind"] == "reference", reply
    assert "two runs of your kernel on the same input differ" in reply["message"]


def test_a_declared_size_that_ran_is_not_called_unchecked(replies):
    kind, reply = replies["baseline: declared size ran"]
    assert kind == "CheckReply" and "x=f32[300]" in {c["case"] for c in reply["comparisons"]}
    assert not any("declared sizes" in note for note in reply["not_checked"])


def test_widened_arguments_are_said(replies):
    _, reply = replies["bf16 input"]
    assert reply["mismatch"] is None
    assert any("bf16" in note and "x" in note for note in reply["not_checked"])


def test_traffic_is_counted_on_one_shape(replies):
    _, reply = replies["larger block"]
    shape = reply["comparisons"][0]["case"]
    rows, columns = map(int, shape.split("[")[1].rstrip("]").split(","))
    for traffic in (reply["baseline_traffic"], reply["candidate_traffic"]):
        assert traffic["loaded_bytes"] == 3 * 4 * rows * columns
        assert traffic["stored_bytes"] == 4 * rows * columns
        assert traffic["programs"] == rows
        assert 4 * traffic["sectors"] * 8 >= traffic["loaded_bytes"] + traffic["stored_bytes"]
    _, counted = replies["counts"]
    assert counted["candidate_traffic"]["atomic_operations"] == 5003


def test_sectors_count_what_a_warp_touches():
    numpy = pytest.importorskip("numpy")
    from search_engine.worker.traffic import sectors

    lanes = numpy.arange(64, dtype=numpy.uint64)
    active = numpy.ones(64, dtype=bool)
    assert sectors(4096 + 4 * lanes, active) == 8
    assert sectors(4096 + 128 * lanes, active) == 64
    assert sectors(4096 + 0 * lanes, active) == 2
    assert sectors(4096 + 128 * lanes, ~active) == 0
    assert sectors(4096 + 128 * lanes, lanes < 5) == 5


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
