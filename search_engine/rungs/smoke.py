"""Whether a candidate is right on two inputs.

Establishes: agreement with the reference on one small odd shape and one case of the workload, with
guard regions intact. Without a device the CPU interpreter answers, on shrunk shapes.
Costs: 10 ms to 1 s on a device; seconds on the interpreter.
Fails when: any element breaks the correctness rule, memory outside a buffer is touched, or the
candidate raises.
Cannot tell: whether it is right on other shapes and values; on the interpreter also nothing about
bf16 or fp8 arithmetic inside the body.
"""

from __future__ import annotations

import asyncio

from search_engine.domain.candidate import Candidate
from search_engine.domain.job import (
    CheckJob,
    CheckReply,
    Completed,
    Depth,
    InterpretJob,
    Job,
    JobResult,
    Lane,
)
from search_engine.domain.run import Rung
from search_engine.domain.verdict import Incorrect
from search_engine.rungs._base import (
    Failed,
    Passed,
    RungOutcome,
    Submit,
    Task,
    failed_result,
    unexpected,
)

_DEVICE_DEADLINE_SECONDS = 30.0
_INTERPRETER_DEADLINE_SECONDS = 60.0
"""A 1823 x 781 softmax takes the interpreter 2.3 s; a minute covers the whole shrunk plan."""


class Smoke:
    """Two inputs."""

    rung = Rung.SMOKE

    async def run(
        self, task: Task, candidates: tuple[Candidate, ...], rounds: int, submit: Submit
    ) -> tuple[RungOutcome, ...]:
        """Check each candidate by itself."""
        jobs = (_check(task, candidate, submit) for candidate in candidates)
        return tuple(await asyncio.gather(*jobs))


async def _check(task: Task, candidate: Candidate, submit: Submit) -> RungOutcome:
    baseline, source = task.source(task.baseline), task.source(candidate)
    job: Job
    if task.measured:
        job = CheckJob(baseline, source, task.workload, Depth.SMOKE, task.seed)
        result = await submit(job, Lane.DEVICE, _DEVICE_DEADLINE_SECONDS)
    else:
        job = InterpretJob(baseline, source, task.workload, task.seed)
        result = await submit(job, Lane.INTERPRET, _INTERPRETER_DEADLINE_SECONDS)
    return read_check(result)


def read_check(result: JobResult) -> RungOutcome:
    """Outcome of a correctness job."""
    failure = failed_result(result)
    if failure is not None:
        return failure
    assert isinstance(result, Completed)
    match result.reply:
        case CheckReply(mismatch=None) as reply:
            return Passed(reply)
        case CheckReply(mismatch=mismatch) if mismatch is not None:
            return Failed(Incorrect(mismatch))
        case other:
            return unexpected(other)
