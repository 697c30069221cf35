"""Runs one rung for some candidates: charges the budget, asks the executor, reads the answers."""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import dataclass, field

from search_engine.domain.candidate import Candidate, CandidateId
from search_engine.domain.facts import CompileFacts
from search_engine.domain.job import (
    BaselineReply,
    BatchReply,
    CheckReply,
    CompareReply,
    Completed,
    Job,
    JobResult,
    Lane,
    Reply,
    TimeReply,
)
from search_engine.domain.ports import Executor
from search_engine.domain.run import Budget, Rung
from search_engine.rungs._base import Passed, RungOutcome, Screened, Task
from search_engine.rungs.registry import step

_FULL_ROUNDS = 20
"""What "evaluated fully" means in the spend report: 20 interleaved rounds."""


@dataclass(slots=True)
class Ledger:
    """What a run has spent. Amounts never fall."""

    budget: Budget
    device_seconds: float = 0.0
    evaluations: int = 0
    per_rung: dict[str, float] = field(default_factory=dict[str, float])
    per_proposer: Counter[str] = field(default_factory=Counter[str])
    full_evaluation_device_seconds: float = 0.0

    def charge(self, rung: Rung, device_seconds: float) -> None:
        """Settle what a job used on the device."""
        self.device_seconds += device_seconds
        self.per_rung[rung.value] = self.per_rung.get(rung.value, 0.0) + device_seconds

    def exhausted(self, elapsed_seconds: float, share: float) -> str | None:
        """The currency of which ``share`` of the budget is spent, or None."""
        if elapsed_seconds >= self.budget.wall_seconds * share:
            return "wall seconds"
        if self.device_seconds >= self.budget.device_seconds * share:
            return "device seconds"
        if self.evaluations >= self.budget.evaluations:
            return "evaluations"
        return None


class Ladder:
    """Climbs one rung at a time on behalf of one run."""

    def __init__(self, task: Task, executor: Executor, ledger: Ledger) -> None:
        self._facts: dict[CandidateId, CompileFacts] = dict(task.facts)
        self.task = dataclasses.replace(task, facts=self._facts)
        self._executor = executor
        self._ledger = ledger
        self._timed: set[CandidateId] = set()

    async def run(
        self, rung: Rung, candidates: tuple[Candidate, ...], rounds: int
    ) -> tuple[RungOutcome, ...]:
        """One outcome for each candidate, in order."""

        async def submit(job: Job, lane: Lane, deadline_seconds: float) -> JobResult:
            result = await self._executor.run(job, lane, deadline_seconds)
            if isinstance(result, Completed):
                self._ledger.charge(rung, device_seconds(result.reply))
            return result

        outcomes = await step(rung).run(self.task, candidates, rounds, submit)
        for candidate, outcome in zip(candidates, outcomes, strict=True):
            self._note(rung, candidate, outcome)
        return outcomes

    def _note(self, rung: Rung, candidate: Candidate, outcome: RungOutcome) -> None:
        if rung is Rung.COMPILE and candidate.id != self.task.baseline.id:
            self._ledger.evaluations += 1
            self._ledger.per_proposer[candidate.proposer] += 1
        if not isinstance(outcome, Passed):
            return
        if isinstance(outcome.finding, CompileFacts):
            self._facts[candidate.id] = outcome.finding
        if isinstance(outcome.finding, Screened) and candidate.id not in self._timed:
            self._timed.add(candidate.id)
            cost = outcome.finding.device_seconds_per_round * _FULL_ROUNDS
            self._ledger.full_evaluation_device_seconds += cost


def device_seconds(reply: Reply) -> float:
    """Seconds of device time that a reply reports."""
    match reply:
        case CheckReply() | BaselineReply() | TimeReply():
            return reply.device_seconds
        case CompareReply(time=time):
            return time.device_seconds
        case BatchReply(replies=replies):
            return sum(device_seconds(item) for item in replies)
        case _:
            return 0.0
