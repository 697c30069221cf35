"""Which of many correct candidates are fast: a few interleaved rounds, the anchor among them.

Establishes: an order. The first candidate given is the anchor; the ratio of each other one to it is
taken within the same rounds, so that drift of clocks cancels.
Costs: about 0.3 ms of device time a candidate and round.
Fails when: a candidate cannot be timed.
Cannot tell: whether a difference is real; no number of this rung is ever shown as a claim.
"""

from __future__ import annotations

from search_engine.domain.candidate import Candidate, CandidateId
from search_engine.domain.job import Completed, Lane, TimeJob, TimeReply
from search_engine.domain.run import Rung
from search_engine.domain.verdict import RuntimeFailed
from search_engine.rungs._base import (
    Failed,
    Passed,
    RungOutcome,
    Screened,
    Submit,
    Task,
    failed_result,
    unexpected,
)
from search_engine.rungs.compile import main_case

_BASE_DEADLINE_SECONDS = 20.0
_DEADLINE_SECONDS_PER_CANDIDATE = 2.0


class QuickTiming:
    """Interleaved screening."""

    rung = Rung.QUICK_TIMING

    async def run(
        self, task: Task, candidates: tuple[Candidate, ...], rounds: int, submit: Submit
    ) -> tuple[RungOutcome, ...]:
        """Time all in one job; a batch that dies is split to find the culprit."""
        sources = tuple(task.source(candidate) for candidate in candidates)
        job = TimeJob(sources, task.workload, main_case(task), rounds, True, task.seed)
        deadline = _BASE_DEADLINE_SECONDS + _DEADLINE_SECONDS_PER_CANDIDATE * len(candidates)
        result = await submit(job, Lane.DEVICE, deadline)
        failure = failed_result(result)
        if failure is None:
            assert isinstance(result, Completed)
            if isinstance(result.reply, TimeReply):
                return _read(candidates, result.reply)
            return tuple(unexpected(result.reply) for _ in candidates)
        if len(candidates) <= 2:
            return (Passed(None), *(failure for _ in candidates[1:]))
        return await self._split(task, candidates, rounds, submit)

    async def _split(
        self, task: Task, candidates: tuple[Candidate, ...], rounds: int, submit: Submit
    ) -> tuple[RungOutcome, ...]:
        anchor, rest = candidates[0], candidates[1:]
        middle = len(rest) // 2
        left = await self.run(task, (anchor, *rest[:middle]), rounds, submit)
        right = await self.run(task, (anchor, *rest[middle:]), rounds, submit)
        return (left[0], *left[1:], *right[1:])


def _read(candidates: tuple[Candidate, ...], reply: TimeReply) -> tuple[RungOutcome, ...]:
    samples = {CandidateId(s): us for s, us in zip(reply.sources, reply.samples_us, strict=True)}
    messages = {CandidateId(item.source): item.message for item in reply.failures}
    anchor = samples.get(candidates[0].id, ())
    total = sum(sum(us) for us in reply.samples_us) or 1.0

    def outcome(candidate: Candidate) -> RungOutcome:
        own = samples.get(candidate.id, ())
        if candidate.id in messages or not own:
            return Failed(RuntimeFailed(messages.get(candidate.id, "not timed")))
        seconds = reply.device_seconds * sum(own) / total / len(own)
        return Passed(Screened(anchor, own, seconds))

    return tuple(outcome(candidate) for candidate in candidates)
