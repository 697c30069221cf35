"""Whether a candidate is right on the whole input plan.

Establishes: agreement with the reference over edge shapes, value distributions, layouts and
repetitions, on the device.
Costs: seconds of device time.
Fails when: any element of any input breaks the correctness rule.
Cannot tell: what the plan does not contain; that is listed under "not checked".
"""

from __future__ import annotations

from search_engine.domain.candidate import Candidate
from search_engine.domain.job import CheckJob, Depth, Lane
from search_engine.domain.run import Rung
from search_engine.rungs._base import RungOutcome, Submit, Task
from search_engine.rungs.smoke import read_check

_DEADLINE_SECONDS = 90.0


class FullCorrectness:
    """The whole input plan."""

    rung = Rung.FULL_CORRECTNESS

    async def run(
        self, task: Task, candidates: tuple[Candidate, ...], rounds: int, submit: Submit
    ) -> tuple[RungOutcome, ...]:
        """Check one after another: the device is one."""
        outcomes: list[RungOutcome] = []
        for candidate in candidates:
            job = CheckJob(
                task.source(task.baseline),
                task.source(candidate),
                task.workload,
                Depth.FULL,
                task.seed,
            )
            outcomes.append(read_check(await submit(job, Lane.DEVICE, _DEADLINE_SECONDS)))
        return tuple(outcomes)
