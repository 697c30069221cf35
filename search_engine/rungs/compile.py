"""Whether a candidate compiles for the target, and what the compiler made of it.

Establishes: machine code exists for every launch of the main case, and what it uses.
Costs: 0.05 to 10 seconds of CPU, in parallel, no device.
Fails when: the compiler refuses, or a launch exceeds a limit of the target.
Cannot tell: whether the code is right or fast. Spills are a hint, not a veto.
"""

from __future__ import annotations

import asyncio

from search_engine.domain.candidate import Candidate
from search_engine.domain.job import CompileJob, CompileReply, Completed, Lane
from search_engine.domain.run import Rung
from search_engine.rungs._base import (
    Passed,
    RungOutcome,
    Submit,
    Task,
    failed_result,
    unexpected,
)

_DEADLINE_SECONDS = 60.0
"""A cold worker's first compile took up to 10 s on a loaded two-core machine; ptxas has needed 13 s
for a pathological kernel. Beyond a minute a candidate is not worth having."""


class Compile:
    """Ahead-of-time compilation."""

    rung = Rung.COMPILE

    async def run(
        self, task: Task, candidates: tuple[Candidate, ...], rounds: int, submit: Submit
    ) -> tuple[RungOutcome, ...]:
        """Compile all at once; the executor bounds how many run in parallel."""
        jobs = (_compile(task, candidate, submit) for candidate in candidates)
        return tuple(await asyncio.gather(*jobs))


async def _compile(task: Task, candidate: Candidate, submit: Submit) -> RungOutcome:
    # An odd shape is another specialisation; compiled here, it costs the device worker nothing.
    also = task.baseline_reply.smoke_cases if task.baseline_reply is not None else ()
    case = main_case(task)
    job = CompileJob(task.source(candidate), task.workload, case, task.target.name, also)
    result = await submit(job, Lane.COMPILE, _DEADLINE_SECONDS)
    failure = failed_result(result)
    if failure is not None:
        return failure
    assert isinstance(result, Completed)
    match result.reply:
        case CompileReply(facts=facts):
            return Passed(facts)
        case other:
            return unexpected(other)


def main_case(task: Task) -> int:
    """Index of the case with the largest weight; the first of equals."""
    cases = task.workload.cases
    return max(range(len(cases)), key=lambda index: (cases[index].weight, -index))
