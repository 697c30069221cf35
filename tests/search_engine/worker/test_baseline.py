"""The user's kernel before a search: gated, timed against itself, sized for a roofline."""

import sys

import pytest

from search_engine.domain.job import BaselineJob, BaselineReply, Refusal, RefusalKind
from search_engine.worker.baseline import baseline, main_case
from tests.search_engine.worker.versions import version, workload

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def _path(monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))


def measure(root, described, body, parameters="x"):
    return baseline(BaselineJob(version(root, body, parameters), described, 1))


def test_a_right_kernel_is_described(tmp_path):
    described = workload(
        "x=f32[M:64,N:100]", "x=bf16[M:8,N:16]", reference="x.sum(-1)", flops_expression="x.numel()"
    )
    reply = measure(tmp_path, described, "return x.sum(-1)")
    assert isinstance(reply, BaselineReply), reply
    assert reply.deterministic and reply.independent_reference
    assert reply.compulsory_bytes == 4 * (64 * 100 + 64)
    assert reply.operations == 6400
    assert reply.working_set_bytes == 4 * (64 * 100 + 64)
    assert 0 < reply.low_us <= reply.median_us <= reply.high_us
    assert reply.noise >= 0 and reply.copy_bandwidth > 0 and reply.matrix_rate > 0


@pytest.mark.parametrize(
    ("text", "fields", "moved"),
    [
        ("t=f32[50,8] i=i64[20]{0..49}", {}, None),
        ("t=f32[50,8] i=i64[20]{0..49}", {"bytes_expression": "i.numel()*8*8"}, 1280),
        ("t=f32[8,50] i=i64[8]{0..49}", {}, 4 * 400 + 8 * 8 + 4 * 400),
    ],
)
def test_bytes_of_data_dependent_kernels_must_be_declared(text, fields, moved, tmp_path):
    body = "return t[i]" if "t=f32[50" in text else "return t * (1 + i[:, None] * 0)"
    reference = body.removeprefix("return ")
    described = workload(text, reference=reference, **fields)
    reply = measure(tmp_path, described, body, "t, i")
    assert isinstance(reply, BaselineReply), reply
    assert reply.compulsory_bytes == moved


@pytest.mark.parametrize(
    ("body", "reference", "reason"),
    [
        ("return x.sum(-1) + 1", "x.sum(-1)", "disagrees with its reference"),
        ("return torch.ones_like(x)", "torch.ones_like(x)", "does not depend"),
        ("return x[:3]", "x", "shape"),
        ("return x", "x, x", "1 more outputs"),
        ("return x", "x @ x @ x[:7]", "the reference raises RuntimeError"),
    ],
)
def test_kernels_that_cannot_be_an_oracle_are_refused(body, reference, reason, tmp_path):
    reply = measure(tmp_path, workload("x=f32[64,100]", reference=reference), body)
    assert isinstance(reply, Refusal) and reply.kind is RefusalKind.REFERENCE
    assert reason in reply.message


def test_a_kernel_that_raises_is_refused(tmp_path):
    reply = measure(tmp_path, workload("x=f32[8]"), "raise TypeError('bad argument')")
    assert reply.kind is RefusalKind.RUNTIME and "bad argument" in reply.message


def test_a_kernel_that_answers_differently_each_time_is_refused(tmp_path):
    body = "return x + torch.rand_like(x)"
    reply = measure(tmp_path, workload("x=f32[64]"), body)
    assert isinstance(reply, Refusal) and reply.kind is RefusalKind.REFERENCE


def test_the_heaviest_case_is_the_main_one():
    import dataclasses

    described = workload("x=f32[8]", "x=f32[16]")
    light = dataclasses.replace(described.cases[0], weight=0.1)
    assert main_case(dataclasses.replace(described, cases=(light, described.cases[1]))) == 1
