"""The device jobs on a real GPU: baseline, full check, timing, comparison with PyTorch."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from search_engine.domain.job import (
    BaselineJob,
    BaselineReply,
    CheckJob,
    CheckReply,
    CompareJob,
    CompareReply,
    Depth,
    TimeJob,
    TimeReply,
)
from search_engine.frontends.triton import parse_module
from search_engine.frontends.workload import parse_workloads
from search_engine.source import make_source
from search_engine.worker.baseline import baseline
from search_engine.worker.compare import compare
from search_engine.worker.correctness import check
from search_engine.worker.timing import time_sources

torch = pytest.importorskip("torch")
pytest.importorskip("triton")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"),
]
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def load(name: str):
    path = EXAMPLES / f"{name}.py"
    text = path.read_text()
    workload = parse_workloads(parse_module(text, str(path)))[0][0]
    return path, text, workload


def candidate(path, text, workload, *edits):
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    return make_source(f"{path.stem}-{len(text)}-{hash(edits)}", path, text, workload.entry)


@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("*.py")))
def test_every_example_is_a_baseline_and_equals_itself(name):
    path, text, workload = load(name)
    source = candidate(path, text, workload)
    reply = baseline(BaselineJob(source, workload, 1))
    assert isinstance(reply, BaselineReply), reply
    assert reply.median_us > 1 and reply.noise < 0.2
    checked = check(CheckJob(source, source, workload, Depth.FULL, 2))
    assert isinstance(checked, CheckReply), checked
    assert checked.mismatch is None
    assert len(checked.comparisons) > 5


def test_a_wrong_mask_and_lower_precision_are_caught():
    path, text, workload = load("softmax")
    source = candidate(path, text, workload)
    rounded = "tl.exp((x - row_max).to(tl.bfloat16).to(tl.float32)) / denominator"
    padding = "mask=mask, other={}).to(tl.float32)\n        denominator"
    for edit in (
        (padding.format('-float("inf")'), padding.format("0.0")),
        ("tl.exp(x - row_max) / denominator", rounded),
        ("mask=mask, other=0.0", "mask=start + cols < n_cols - 1, other=0.0"),
    ):
        wrong = candidate(path, text, workload, edit)
        reply = check(CheckJob(source, wrong, workload, Depth.SMOKE, 3))
        assert isinstance(reply, CheckReply), reply
        assert reply.mismatch is not None, edit


@pytest.mark.parametrize("cold", [True, False])
def test_a_kernel_against_itself_is_as_fast_as_itself(cold):
    path, text, workload = load("softmax")
    one = candidate(path, text, workload)
    same = candidate(path, text + "\n# another text\n", workload)
    faster = candidate(path, text, workload, ("BLOCK=128", "BLOCK=1024"))
    reply = time_sources(TimeJob((one, same, faster), workload, 0, 20, cold, 1))
    assert isinstance(reply, TimeReply) and not reply.failures
    medians = [sorted(samples)[10] for samples in reply.samples_us]
    assert math.isclose(medians[0], medians[1], rel_tol=0.1)
    assert all(peak > 0 for peak in reply.peak_memory_bytes)


def test_eager_and_compiled_references_are_timed_beside_it():
    path, text, workload = load("softmax")
    reply = compare(CompareJob((candidate(path, text, workload),), workload, 0, 10, 1))
    assert isinstance(reply, CompareReply) and not reply.time.failures
    assert [len(samples) for samples in reply.time.samples_us] == [10, 10, 10]
