"""The whole check on plain torch entries: what is accepted, what is caught, what is refused."""

import sys

import pytest

from search_engine.domain.job import CheckJob, CheckReply, Depth, Refusal, RefusalKind
from search_engine.worker.correctness import check
from tests.search_engine.worker.versions import version, workload

torch = pytest.importorskip("torch")

SOFTMAX = workload("x=f32[M:48,N:200]", reference="torch.softmax(x, -1)")
BASELINE = "out = torch.empty_like(x)\nout.copy_(torch.softmax(x, -1))\nreturn out"


@pytest.fixture(autouse=True)
def _path(monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))


def run_check(root, baseline, candidate, described=SOFTMAX, depth=Depth.FULL, parameters="x"):
    sources = (version(root, body, parameters) for body in (baseline, candidate))
    return check(CheckJob(*sources, described, depth, 7))


def mismatch(root, candidate, **fields):
    reply = run_check(root, BASELINE, candidate, **fields)
    assert isinstance(reply, CheckReply), reply
    assert reply.mismatch is not None, "the fault was not caught"
    return reply.mismatch


def test_another_right_way_passes_on_the_whole_plan(tmp_path):
    body = "e = (x - x.amax(-1, keepdim=True)).exp()\nreturn e / e.sum(-1, keepdim=True)"
    reply = run_check(tmp_path, BASELINE, body)
    assert reply.mismatch is None
    assert len(reply.comparisons) > 20
    assert all(0 <= c.error <= 1 for c in reply.comparisons)
    assert reply.independent_reference and not reply.nondeterministic


FAULTS = {
    "no maximum": "return x.exp() / x.exp().sum(-1, keepdim=True)",
    "unwritten element": "out = torch.empty_like(x)\nout[:, :-1] = torch.softmax(x, -1)[:, :-1]\n"
    "return out",
    "wrong for one column": "return torch.softmax(x, -1) if x.shape[-1] != 1 else x",
    "block of 256": "return torch.softmax(x[:, :256], -1) if x.shape[-1] > 256 else "
    "torch.softmax(x, -1)",
    "wrong past 1024": "out = torch.softmax(x, -1)\nout[:, 1024:] = 0\nreturn out",
    "lower precision": "return torch.softmax(x.bfloat16(), -1).float()",
    "other strides": "return torch.softmax(x, -1).t().contiguous().t()",
    "other dtype": "return torch.softmax(x.double(), -1)",
    "two outputs": "return torch.softmax(x, -1), x.clone()",
    "returns its input": "x.copy_(torch.softmax(x, -1))\nreturn x",
    "flat index on strided rows": "flat = torch.as_strided(x, x.shape, (x.shape[-1], 1))\n"
    "return torch.softmax(flat, -1)",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_caught(fault, tmp_path):
    found = mismatch(tmp_path, FAULTS[fault])
    assert found.reason


def test_an_overrun_is_caught_by_the_guards(tmp_path):
    body = BASELINE.replace(
        "return out",
        "out.as_strided((1,), (1,), out.storage_offset() + out.numel()).fill_(1.0)\nreturn out",
    )
    found = mismatch(tmp_path, body, depth=Depth.SMOKE)
    assert "beside `buffer 0`" in found.reason


def test_a_write_into_an_input_is_caught(tmp_path):
    found = mismatch(tmp_path, "y = torch.softmax(x, -1)\nx[0, 0] = 9.0\nreturn y")
    assert "`x`" in found.reason


def test_a_candidate_that_raises_is_refused_with_its_line(tmp_path):
    reply = run_check(tmp_path, BASELINE, "y = x + 1\nraise ValueError('boom')")
    assert isinstance(reply, Refusal) and reply.kind is RefusalKind.RUNTIME
    assert "boom" in reply.message and reply.line == 4


def test_in_place_buffers_are_restored_before_each_run(tmp_path):
    described = workload("x=f32[N:50] total=f32[N]!!", reference="x + total")
    body, parameters = "total.add_(x)", "x, total"
    reply = run_check(tmp_path, body, body, described, parameters=parameters)
    assert reply.mismatch is None and reply.comparisons[-1].error > 0
    dropped = run_check(tmp_path, body, "total.copy_(x)", described, parameters=parameters)
    assert dropped.mismatch.output == "total"


def test_a_baseline_that_disagrees_with_its_reference_is_refused(tmp_path):
    wrong = "y = torch.softmax(x, -1)\ny[x.shape[0] - 1, 5:6] += 0.01\nreturn y"
    reply = run_check(tmp_path, wrong, BASELINE)
    assert isinstance(reply, Refusal) and reply.kind is RefusalKind.REFERENCE
    assert "disagrees with its reference" in reply.message


@pytest.mark.parametrize("reference", ["torch.softmax(x, -1)", None])
def test_a_baseline_that_does_not_repeat_itself_is_named_so(reference, tmp_path):
    described = workload("x=f32[M:48,N:200]", reference=reference)
    random = "return torch.softmax(x, -1) + torch.rand(1)"
    reply = run_check(tmp_path, random, BASELINE, described)
    assert isinstance(reply, Refusal) and reply.kind is RefusalKind.REFERENCE
    assert "two runs of your kernel on the same input differ" in reply.message


def test_a_baseline_that_raises_on_a_declared_case_is_refused_with_its_line(tmp_path):
    reply = run_check(tmp_path, "y = x + 1\nraise ValueError('no way')", BASELINE)
    assert isinstance(reply, Refusal) and reply.kind is RefusalKind.RUNTIME
    assert reply.message == "your kernel raises ValueError: no way" and reply.line == 4


def test_shapes_outside_the_baselines_domain_are_listed_not_held_against_anyone(tmp_path):
    described = workload("x=f32[M:48,N:256]", reference="torch.softmax(x, -1)")
    asserting = f"assert x.shape[-1] % 64 == 0\n{BASELINE}"
    reply = run_check(tmp_path, asserting, asserting, described)
    assert reply.mismatch is None
    assert any("AssertionError" in reason for reason in reply.outside_domain)


def test_without_a_reference_the_baseline_decides_and_the_reply_says_so(tmp_path):
    described = workload("x=f32[M:48,N:200]")
    right = "e = (x - x.amax(-1, keepdim=True)).exp()\nreturn e / e.sum(-1, keepdim=True)"
    same = run_check(tmp_path, BASELINE, right, described)
    assert same.mismatch is None and not same.independent_reference
    wrong = run_check(tmp_path, BASELINE, "return torch.softmax(x, 0)", described)
    assert wrong.mismatch is not None


def test_nondeterminism_is_named_and_can_be_forbidden(tmp_path):
    body = BASELINE.replace("return", "out *= 1 + (torch.rand(x.shape) < 0.2) * 2.0**-23\nreturn")
    reply = run_check(tmp_path, BASELINE, body)
    assert reply.nondeterministic and reply.mismatch is None
    strict = workload("x=f32[M:48,N:200]", reference="torch.softmax(x, -1)", deterministic=True)
    assert "deterministic" in run_check(tmp_path, BASELINE, body, strict).mismatch.reason


def test_gradients_are_compared(tmp_path):
    described = workload("x=f32[M:8,N:20]", reference="torch.tanh(x)", gradients=("x",))
    right = "return torch.tanh(x)"
    assert run_check(tmp_path, right, right, described).mismatch is None
    detached = "y = torch.tanh(x.detach())\nreturn y + (x - x.detach())"
    found = run_check(tmp_path, right, detached, described).mismatch
    assert found.output == "gradient of x"


def test_an_index_may_differ_in_a_tie_only_if_allowed(tmp_path):
    first = "return x.argmax(-1)"
    last = "return x.shape[-1] - 1 - x.flip(-1).argmax(-1)"
    text, reference = "x=f32[M:48,N:200]", "torch.argmax(x, dim=-1)"
    strict = run_check(tmp_path, first, last, workload(text, reference=reference))
    assert strict.mismatch.reason == "the index differs"
    loose = workload(text, reference=reference, allow=("any-tie",))
    assert run_check(tmp_path, first, last, loose).mismatch is None
    wrong = run_check(tmp_path, first, "return x.argmin(-1)", loose)
    assert "another value" in wrong.mismatch.reason


def test_setup_and_call(tmp_path):
    described = workload(
        "x=f32[M:8,N:20]",
        reference="x * factor",
        setup=("factor = 3.0",),
        call="run(x, factor)",
    )
    body = "return x * f"
    assert run_check(tmp_path, body, body, described, parameters="x, f").mismatch is None
