"""Interleaved timing: who is timed, how often, and what a failure does to the others."""

import functools
import math
import sys

import pytest

from search_engine.domain.job import (
    CompareJob,
    CompareReply,
    Refusal,
    RefusalKind,
    TimeJob,
    TimeReply,
)
from search_engine.worker.compare import compare
from search_engine.worker.interleave import Contender, interleave
from search_engine.worker.statistics import median_interval, noise
from search_engine.worker.stopwatch import Stopwatch, calls_for
from search_engine.worker.timing import time_sources
from tests.search_engine.worker.versions import version, workload

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def _path(monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))


def contender(name, log):
    return Contender(name, lambda: log.append(name))


def test_each_round_runs_each_contender_once_in_shuffled_order():
    log: list[str] = []
    names = ("a", "b", "c", "d")
    watch = Stopwatch()
    watch.calls_for = lambda *_: 1
    reply = interleave(tuple(contender(n, log) for n in names), None, 20, watch, 3)
    rounds = [tuple(log[-80:][i : i + 4]) for i in range(0, 80, 4)]
    assert all(sorted(order) == list(names) for order in rounds)
    assert len(set(rounds)) > 5
    assert [len(samples) for samples in reply.samples_us] == [20] * 4


def test_state_is_restored_before_every_call():
    state, seen = [0], []

    def call():
        seen.append(state[0])
        state[0] += 1

    def restore():
        state[0] = 0

    reply = interleave((Contender("a", call),), restore, 5, Stopwatch(), 1)
    assert isinstance(reply, TimeReply)
    timed = 5 * reply.calls_per_sample
    assert set(seen[-timed:]) == {0}


def test_one_failure_does_not_spoil_the_others(tmp_path):
    sources = tuple(
        version(tmp_path, body)
        for body in ("return x + 1", "raise ValueError('no')", "return (", "return 1 + x")
    )
    described = workload("x=f32[64]")
    reply = time_sources(TimeJob(sources, described, 0, 4, True, 1))
    assert [len(samples) for samples in reply.samples_us] == [4, 0, 0, 4]
    assert [f.source for f in reply.failures] == [sources[1].id, sources[2].id]
    assert "no" in reply.failures[0].message and "SyntaxError" in reply.failures[1].message


def test_a_lost_context_ends_the_job_and_names_the_version():
    def lost():
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    log: list[str] = []
    reply = interleave((Contender("bad", lost), contender("a", log)), None, 3, Stopwatch(), 1)
    assert isinstance(reply, Refusal) and reply.fatal and "bad" in reply.message
    assert log == []


def test_short_kernels_share_a_sample_and_long_ones_do_not():
    assert calls_for(60.0) == 1
    assert calls_for(10.0) == 20
    assert calls_for(0.01) == 64


def test_workloads_that_cannot_be_built_are_refused(tmp_path):
    described = workload("x=f32[M:4] n=M//0")
    job = TimeJob((version(tmp_path, "return x", "x, n"),), described, 0, 1, True, 1)
    reply = time_sources(job)
    assert isinstance(reply, Refusal) and reply.kind is RefusalKind.WORKLOAD


def test_the_reference_is_timed_in_the_same_rounds(tmp_path, monkeypatch):
    # Traced for real, without the 20 s of a C++ compiler.
    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="eager"))
    described = workload("x=f32[64,64]", reference="torch.softmax(x * scale, -1)")
    source = version(tmp_path, "return torch.softmax(x, -1)", "x, scale=1.0")
    reply = compare(CompareJob((source,), described, 0, 3, 1))
    assert isinstance(reply, CompareReply)
    assert reply.time.sources == (source.id, "eager", "torch.compile")
    assert [len(samples) for samples in reply.time.samples_us] == [3, 3, 3]
    assert not reply.tf32
    none = compare(CompareJob((source,), workload("x=f32[64,64]"), 0, 3, 1))
    assert none.kind is RefusalKind.UNSUPPORTED


def test_intervals_hold_the_median_and_noise_is_zero_for_equal_series():
    samples = [10.0, 11.0, 9.0, 10.5, 30.0]
    middle, low, high = median_interval(samples, 1)
    assert middle == 10.5 and low <= middle <= high
    assert median_interval(samples, 1) == (middle, low, high)
    assert noise(samples, samples, 1) == 0.0
    shaken = [s * (1.1 if i % 2 else 0.9) for i, s in enumerate(samples)]
    assert math.log(1.1) / 2 < noise(samples, shaken, 1) < 0.2
