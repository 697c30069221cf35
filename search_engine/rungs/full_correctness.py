"""Whether a candidate is right on the whole input plan.

Establishes: agreement with the reference over edge shapes, value distributions, layouts and
repetitions, on the device.
Costs: seconds of device time.
Fails when: any element of any input breaks the correctness rule.
Cannot tell: what the plan does not contain; that is listed under "not checked".
"""

from __future__ import annotations

import asyncio

from search_engine.domain.candidate import Candidate
from search_engine.domain.job import CheckJob, CompileJob, Depth, Lane
from search_engine.domain.run import Rung
from search_engine.rungs._base import RungOutcome, Submit, Task
from search_engine.rungs.compile import main_case
from search_engine.rungs.smoke import read_check

_DEADLINE_SECONDS = 90.0
_COMPILE_DEADLINE_SECONDS = 60.0
_SHAPES_PER_JOB = 2
"""Small enough that the shapes of a plan spread over the compile workers of a larger machine."""


class FullCorrectness:
    """The whole input plan."""

    rung = Rung.FULL_CORRECTNESS

    async def run(
        self, task: Task, candidates: tuple[Candidate, ...], rounds: int, submit: Submit
    ) -> tuple[RungOutcome, ...]:
        """Check one after another: the device is one."""
        outcomes: list[RungOutcome] = []
        for candidate in candidates:
            await _compile_shapes(task, candidate, submit)
            sources = (task.source(task.baseline), task.source(candidate))
            job = CheckJob(*sources, task.workload, Depth.FULL, task.seed)
            outcomes.append(read_check(await submit(job, Lane.DEVICE, _DEADLINE_SECONDS)))
        return tuple(outcomes)


async def _compile_shapes(task: Task, candidate: Candidate, submit: Submit) -> None:
    """Compile the plan's shapes in parallel, off the device; failures show in the check."""
    cases = task.baseline_reply.full_cases if task.baseline_reply is not None else ()
    source, main = task.source(candidate), main_case(task)
    jobs = (
        CompileJob(source, task.workload, main, task.target.name, cases[i : i + _SHAPES_PER_JOB])
        for i in range(0, len(cases), _SHAPES_PER_JOB)
    )
    await asyncio.gather(*(submit(j, Lane.COMPILE, _COMPILE_DEADLINE_SECONDS) for j in jobs))
