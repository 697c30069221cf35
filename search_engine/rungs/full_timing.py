"""Whether a candidate is faster than the baseline beyond noise, on every case.

Establishes: paired ratios on each case, cold and warm, with 95 % intervals; five pairs, doubled up
to 80 until the interval decides.
Costs: a second or two of device time.
Fails when: the lower bound does not exceed 1 + delta, or one case or cache state is slower.
Cannot tell: whether the same holds in another process; the audit asks that.
"""

from __future__ import annotations

from collections.abc import Callable

from search_engine.domain.candidate import Candidate
from search_engine.domain.job import Completed, JobResult, Lane, TimeJob, TimeReply
from search_engine.domain.ordering import is_faster, is_slower, significance
from search_engine.domain.run import Rung
from search_engine.domain.statistics import geometric_mean, median, paired_ratio
from search_engine.domain.verdict import (
    Inconclusive,
    NotImproved,
    Rejected,
    RuntimeFailed,
    Speedup,
    Timing,
)
from search_engine.rungs._base import (
    Failed,
    Passed,
    Proof,
    RungOutcome,
    Submit,
    Task,
    failed_result,
    unexpected,
)

_DEADLINE_SECONDS = 60.0
_FIRST_PAIRS = 5
_MOST_PAIRS = 80
_FEWEST_PAIRS_FOR_CLAIM = 20
"""A claim rests on at least this many pairs, however clear the first five look."""
_QUARANTINE_RATIO = 10.0
"""A ratio above this is only believed with the full number of pairs; the audit repeats it."""


class FullTiming:
    """Sequential paired test."""

    rung = Rung.FULL_TIMING

    async def run(
        self, task: Task, candidates: tuple[Candidate, ...], rounds: int, submit: Submit
    ) -> tuple[RungOutcome, ...]:
        """Time one candidate after another, each paired with the baseline."""
        return tuple([await _prove(task, candidate, submit) for candidate in candidates])


def judge(task: Task, timings: tuple[Timing, ...]) -> RungOutcome:
    """What the timings of all cases, cold and warm, say about a candidate."""
    delta = significance(_noise(task))
    cold = [timing for timing in timings if timing.cold]
    weights = [task.workload.cases[case].weight or 1.0 for case in task.workload.timed]
    total = aggregate(cold, weights)
    slower = [timing for timing in timings if is_slower(timing.speedup, delta)]
    if slower:
        state = "cold" if slower[0].cold else "warm"
        ratio = slower[0].speedup.value
        return Failed(NotImproved(total, f"{ratio:.2f}x on {slower[0].case} ({state} cache)"))
    too_fast = next((reason for t in cold if (reason := below_floor(task, t))), None)
    if too_fast is not None:
        return Failed(Rejected(too_fast))
    if is_faster(total, delta):
        return Passed(Proof(total, timings))
    if total.high > 1.0 + delta:
        return Failed(Inconclusive(total))
    return Failed(NotImproved(total, f"{total.value:.2f}x, within {delta:.1%}"))


def paired_timing(
    case: str, cold: bool, baseline_us: list[float], candidate_us: list[float], seed: int
) -> Timing:
    """A timing with its interval from samples paired by round."""
    speedup = Speedup(*paired_ratio(baseline_us, candidate_us, seed))
    return Timing(case, cold, median(baseline_us), median(candidate_us), speedup, len(baseline_us))


async def _prove(task: Task, candidate: Candidate, submit: Submit) -> RungOutcome:
    timings: list[Timing] = []
    for case in task.workload.timed:
        for cold in (True, False):
            measured = await _pairs(task, candidate, case, cold, submit)
            if not isinstance(measured, Timing):
                return measured
            timings.append(measured)
    return judge(task, tuple(timings))


async def _pairs(
    task: Task, candidate: Candidate, case: int, cold: bool, submit: Submit
) -> Timing | RungOutcome:
    sources = (task.source(task.baseline), task.source(candidate))
    baseline_us: list[float] = []
    candidate_us: list[float] = []
    label, seed = task.workload.cases[case].label, task.seed
    rounds = _FIRST_PAIRS
    while True:
        job = TimeJob(sources, task.workload, case, rounds, cold, seed + len(baseline_us))
        reply = _read(await submit(job, Lane.DEVICE, _DEADLINE_SECONDS))
        if not isinstance(reply, TimeReply):
            return reply
        if reply.failures:
            return Failed(RuntimeFailed(reply.failures[0].message))
        baseline_us.extend(reply.samples_us[0])
        candidate_us.extend(reply.samples_us[1])
        timing = paired_timing(label, cold, baseline_us, candidate_us, seed)
        if timing.samples >= _MOST_PAIRS or _decided(timing, significance(_noise(task))):
            return timing
        rounds = len(baseline_us)


def _decided(timing: Timing, delta: float) -> bool:
    speedup, pairs = timing.speedup, timing.samples
    if speedup.high < 1.0 or (pairs >= _FEWEST_PAIRS_FOR_CLAIM and speedup.high < 1.0 + delta):
        return True
    enough = _MOST_PAIRS if speedup.value > _QUARANTINE_RATIO else _FEWEST_PAIRS_FOR_CLAIM
    return pairs >= enough and speedup.low > 1.0 + delta


def aggregate(timings: list[Timing], weights: list[float]) -> Speedup:
    """Weighted geometric mean of the cases; bounds are the means of the bounds."""

    def mean(read: Callable[[Speedup], float]) -> float:
        return geometric_mean([read(timing.speedup) for timing in timings], weights)

    return Speedup(mean(lambda s: s.value), mean(lambda s: s.low), mean(lambda s: s.high))


def below_floor(task: Task, timing: Timing) -> str | None:
    """Why a cold time is physically impossible on this target, or None.

    Only claimed for the main case with a working set above twice the L2 cache: smaller ones may be
    served from it, and the baseline's byte count is that of the main case.
    """
    reply = task.baseline_reply
    main = max(task.workload.cases, key=lambda case: case.weight)
    if reply is None or reply.compulsory_bytes is None or timing.case != main.label:
        return None
    if reply.working_set_bytes < 2 * task.target.l2_bytes:
        return None
    floor_us = reply.compulsory_bytes / task.target.memory_bandwidth.value * 1e6
    if timing.candidate_us < 0.9 * floor_us:
        return f"{timing.candidate_us:.0f} µs is below the physical floor of {floor_us:.0f} µs"
    return None


def _noise(task: Task) -> float:
    return task.baseline_reply.noise if task.baseline_reply is not None else 0.0


def _read(result: JobResult) -> TimeReply | RungOutcome:
    failure = failed_result(result)
    if failure is not None:
        return failure
    assert isinstance(result, Completed)
    if isinstance(result.reply, TimeReply):
        return result.reply
    return unexpected(result.reply)
