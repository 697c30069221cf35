"""A task and an executor whose answers are written down, for tests of single rungs."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

from search_engine.domain.candidate import Candidate, Numerics, candidate_id
from search_engine.domain.job import (
    BaselineReply,
    BatchJob,
    BatchReply,
    CheckJob,
    CheckReply,
    Comparison,
    Completed,
    Crashed,
    Job,
    JobResult,
    Lane,
    SingleReply,
    SourceFailure,
    TimeJob,
    TimeReply,
)
from search_engine.domain.workload import (
    Case,
    Distribution,
    Extent,
    TensorArgument,
    Values,
    Workload,
    WorkloadSource,
)
from search_engine.frontends.triton import parse_module
from search_engine.rungs._base import Task
from search_engine.targets.registry import target_named

TEXT = """\
import triton
import triton.language as tl


@triton.jit
def k(x, n, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), 1.0)


def entry(x):
    k[(1,)](x, 4, BLOCK=4)
    return x
"""


def candidate(text: str = TEXT, name: str = "") -> Candidate:
    text += f"# {name}\n" if name else ""
    identity = candidate_id(text)
    return Candidate(identity, text, None, identity, "rules", (name,), (name,), (), Numerics.EXACT)


def case(size: int, weight: float = 1.0) -> Case:
    values = Values(Distribution.NORMAL)
    return Case((TensorArgument("x", "f32", (Extent(size),), values),), weight)


BASELINE_REPLY = BaselineReply(
    median_us=100.0, low_us=99.0, high_us=101.0, noise=0.004, deterministic=True,
    independent_reference=True, compulsory_bytes=240_000_000, operations=None,
    copy_bandwidth=4.3e12, matrix_rate=7.9e14, peak_memory_bytes=0,
    working_set_bytes=240_000_000, device_seconds=0.1,
)  # fmt: skip


def task(*cases: Case, reply: BaselineReply = BASELINE_REPLY) -> Task:
    module = parse_module(TEXT, "k.py")
    return Task(
        path=Path("k.py"),
        module=module,
        unit=module.units[0],
        baseline=candidate(),
        workload=Workload("entry", WorkloadSource.DECLARED, cases or (case(1024),)),
        target=target_named("sm_90"),
        seed=1,
        measured=True,
        baseline_reply=reply,
    )


class Machine:
    """Answers timing and correctness jobs from times by (candidate id, case, cold)."""

    def __init__(
        self,
        time_us: Callable[[str, int, bool], float],
        crashes: frozenset[str] = frozenset(),
        fails: frozenset[str] = frozenset(),
        mismatch: object = None,
    ) -> None:
        self.time_us = time_us
        self.crashes = crashes
        self.fails = fails
        self.mismatch = mismatch
        self.jobs: list[tuple[Job, Lane]] = []
        self._rng = random.Random(0)

    async def submit(self, job: Job, lane: Lane, deadline_seconds: float) -> JobResult:
        self.jobs.append((job, lane))
        if isinstance(job, TimeJob) and self.crashes & {s.id for s in job.sources}:
            return Crashed("CUDA error: an illegal memory access", 0.1)
        if isinstance(job, BatchJob):
            return Completed(BatchReply(tuple(self._reply(item) for item in job.jobs)), 0.1)
        return Completed(self._reply(job), 0.1)

    def pairs(self) -> int:
        return sum(job.rounds for job, _ in self.jobs if isinstance(job, TimeJob))

    def _reply(self, job: Job) -> SingleReply:
        if isinstance(job, CheckJob):
            agreed = (Comparison("x=f32[1024]", "normal", job.seed, 0.3, 0.3),)
            return CheckReply(agreed, self.mismatch, (), False, True, (), 0.05)  # type: ignore[arg-type]
        assert isinstance(job, TimeJob)
        drift = [self._rng.gauss(1.0, 0.05) for _ in range(job.rounds)]
        samples = tuple(
            ()
            if source.id in self.fails
            else tuple(
                self.time_us(source.id, job.case, job.cold) * d * self._rng.gauss(1.0, 0.003)
                for d in drift
            )
            for source in job.sources
        )
        failures = tuple(SourceFailure(s.id, "raised") for s in job.sources if s.id in self.fails)
        ids = tuple(source.id for source in job.sources)
        return TimeReply(ids, samples, failures, 1, tuple(0 for _ in ids), 0.01 * job.rounds)
