"""Whether the finalist's claim survives in a fresh process with fresh inputs.

Establishes: full correctness and paired timing again, in a device process that has run nothing
else, with a new seed, and that the baseline alone is as fast as it was beside the candidate. The
ratio measured here is the one a person sees.
Costs: a process start and a few seconds of device time; the finalist only.
Fails when: correctness or speed do not hold again, or the candidate slowed the baseline down.
Cannot tell: races that did not show; compute-sanitizer is listed under "not checked".
"""

from __future__ import annotations

from search_engine.domain.candidate import Candidate
from search_engine.domain.job import (
    BatchJob,
    BatchReply,
    CheckJob,
    CheckReply,
    Completed,
    Depth,
    Lane,
    Refusal,
    SingleReply,
    TimeJob,
    TimeReply,
)
from search_engine.domain.run import Rung
from search_engine.domain.statistics import median
from search_engine.domain.verdict import Incorrect, Rejected, RuntimeFailed, Timing
from search_engine.rungs._base import (
    Failed,
    Passed,
    Proof,
    RungOutcome,
    Submit,
    Task,
    failed_result,
    refused,
    unexpected,
)
from search_engine.rungs.compile import main_case
from search_engine.rungs.full_timing import judge, paired_timing

_DEADLINE_SECONDS = 180.0
_SEED_OFFSET = 7919
"""Fresh inputs: any other number than the search's own seed would do."""
_PAIRS = 40
_ALONE_ROUNDS = 20
_DRIFT_ALLOWANCE = 0.25
"""Power-limited matrix kernels drift 13 to 19 % between a burst and sustained load; a baseline that
differs by more than a quarter was slowed by what ran beside it."""


class Audit:
    """The last rung."""

    rung = Rung.AUDIT

    async def run(
        self, task: Task, candidates: tuple[Candidate, ...], rounds: int, submit: Submit
    ) -> tuple[RungOutcome, ...]:
        """Audit one candidate after another."""
        return tuple([await _audit(task, candidate, submit) for candidate in candidates])


async def _audit(task: Task, candidate: Candidate, submit: Submit) -> RungOutcome:
    batch = _batch(task, candidate)
    result = await submit(batch, Lane.FRESH_DEVICE, _DEADLINE_SECONDS)
    failure = failed_result(result)
    if failure is not None:
        return failure
    assert isinstance(result, Completed)
    if not isinstance(result.reply, BatchReply):
        return unexpected(result.reply)
    replies = result.reply.replies
    if isinstance(replies[-1], Refusal):
        return refused(replies[-1])
    return _read(task, replies)


def _batch(task: Task, candidate: Candidate) -> BatchJob:
    """The baseline alone, then correctness, then every case cold and warm."""
    seed = task.seed + _SEED_OFFSET
    baseline, source = task.source(task.baseline), task.source(candidate)
    alone = TimeJob((baseline,), task.workload, main_case(task), _ALONE_ROUNDS, True, seed)
    check = CheckJob(baseline, source, task.workload, Depth.FULL, seed)
    pairs = tuple(
        TimeJob((baseline, source), task.workload, case, _PAIRS, cold, seed + case)
        for case in task.workload.timed
        for cold in (True, False)
    )
    return BatchJob((alone, check, *pairs))


def _read(task: Task, replies: tuple[SingleReply, ...]) -> RungOutcome:
    alone, check, *pairs = replies
    if not isinstance(alone, TimeReply) or not isinstance(check, CheckReply):
        return unexpected(replies[0])
    if check.mismatch is not None:
        return Failed(Incorrect(check.mismatch))
    timings: list[Timing] = []
    for index, reply in enumerate(pairs):
        if not isinstance(reply, TimeReply):
            return unexpected(reply)
        if reply.failures:
            return Failed(RuntimeFailed(reply.failures[0].message))
        case = task.workload.cases[task.workload.timed[index // 2]]
        label, cold = case.label, index % 2 == 0
        baseline_us, candidate_us = list(reply.samples_us[0]), list(reply.samples_us[1])
        timings.append(paired_timing(label, cold, baseline_us, candidate_us, task.seed))
    slowed = _baseline_slowed(task, alone, timings)
    if slowed is not None:
        return Failed(Rejected(slowed))
    outcome = judge(task, tuple(timings))
    if isinstance(outcome, Passed) and isinstance(outcome.finding, Proof):
        return Passed(Proof(outcome.finding.speedup, outcome.finding.timings, check))
    return outcome


def _baseline_slowed(task: Task, alone: TimeReply, timings: list[Timing]) -> str | None:
    """Why the baseline beside the candidate is not the baseline the user has, or None."""
    if not alone.samples_us or not alone.samples_us[0]:
        return "the baseline alone could not be timed in a fresh process"
    alone_us = median(alone.samples_us[0])
    beside_us = timings[2 * task.workload.timed.index(main_case(task))].baseline_us
    if beside_us > alone_us * (1.0 + _DRIFT_ALLOWANCE):
        return (
            f"the baseline takes {alone_us:.0f} µs alone, {beside_us:.0f} µs beside the candidate"
        )
    return None
