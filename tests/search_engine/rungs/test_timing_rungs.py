"""What counts as faster, what is refused however fast it looks, and who is blamed for a crash."""

from __future__ import annotations

import dataclasses

from search_engine.domain.job import BatchJob, Lane, Mismatch
from search_engine.domain.verdict import Incorrect, NotImproved, Rejected, RuntimeFailed
from search_engine.rungs._base import Failed, Passed, Proof, Screened
from search_engine.rungs.audit import Audit
from search_engine.rungs.full_timing import FullTiming
from search_engine.rungs.quick_timing import QuickTiming

from .fakes import BASELINE_REPLY, Machine, candidate, case, task

FAST = candidate(name="fast")
BASE = candidate()


def times(fast: float, base: float = 100.0):
    return lambda source, _case, _cold: fast if source == FAST.id else base


async def test_clear_gain_passes_with_its_interval() -> None:
    machine = Machine(times(80.0))
    (outcome,) = await FullTiming().run(task(), (FAST,), 0, machine.submit)
    assert isinstance(outcome, Passed)
    assert isinstance(outcome.finding, Proof)
    speedup = outcome.finding.speedup
    assert 1.23 < speedup.low <= speedup.value <= speedup.high < 1.27
    assert all(timing.samples >= 20 for timing in outcome.finding.timings)


async def test_one_percent_is_no_gain() -> None:
    machine = Machine(times(99.0))
    (outcome,) = await FullTiming().run(task(), (FAST,), 0, machine.submit)
    assert isinstance(outcome, Failed)
    assert isinstance(outcome.verdict, NotImproved)


async def test_gain_within_this_runs_noise_is_no_gain() -> None:
    noisy = dataclasses.replace(BASELINE_REPLY, noise=0.06)
    (outcome,) = await FullTiming().run(task(reply=noisy), (FAST,), 0, Machine(times(92.0)).submit)
    assert isinstance(outcome, Failed)


async def test_slower_on_one_case_is_not_offered() -> None:
    def time_us(source: str, index: int, cold: bool) -> float:
        return 100.0 if source != FAST.id else (50.0, 110.0)[index]

    (outcome,) = await FullTiming().run(
        task(case(1024), case(64, 0.1)), (FAST,), 0, Machine(time_us).submit
    )
    assert isinstance(outcome, Failed)
    assert isinstance(outcome.verdict, NotImproved)
    assert "x=f32[64]" in outcome.verdict.reason


async def test_slower_with_a_warm_cache_is_not_offered() -> None:
    def time_us(source: str, index: int, cold: bool) -> float:
        return 100.0 if source != FAST.id else (80.0 if cold else 120.0)

    (outcome,) = await FullTiming().run(task(), (FAST,), 0, Machine(time_us).submit)
    assert isinstance(outcome, Failed)
    assert isinstance(outcome.verdict, NotImproved)
    assert "warm" in outcome.verdict.reason


async def test_faster_than_memory_allows_is_an_evaluation_error() -> None:
    (outcome,) = await FullTiming().run(task(), (FAST,), 0, Machine(times(20.0)).submit)
    assert isinstance(outcome, Failed)
    assert isinstance(outcome.verdict, Rejected)
    assert "physical floor" in outcome.verdict.reason


async def test_ten_fold_gain_needs_all_pairs() -> None:
    small = dataclasses.replace(BASELINE_REPLY, working_set_bytes=1024)
    machine = Machine(times(5.0))
    (outcome,) = await FullTiming().run(task(reply=small), (FAST,), 0, machine.submit)
    assert isinstance(outcome, Passed)
    assert machine.pairs() == 160  # 80 cold, 80 warm


async def test_loser_is_dropped_early() -> None:
    machine = Machine(times(150.0))
    await FullTiming().run(task(), (FAST,), 0, machine.submit)
    assert machine.pairs() <= 10


async def test_crash_in_a_batch_is_blamed_on_its_culprit_alone() -> None:
    others = tuple(candidate(name=f"c{i}") for i in range(6))
    culprit = others[3]
    machine = Machine(times(90.0), crashes=frozenset({culprit.id}))
    outcomes = await QuickTiming().run(task(), (BASE, *others), 3, machine.submit)
    for item, outcome in zip(others, outcomes[1:], strict=True):
        if item is culprit:
            assert isinstance(outcome, Failed)
            assert isinstance(outcome.verdict, RuntimeFailed)
        else:
            assert isinstance(outcome, Passed)
            assert isinstance(outcome.finding, Screened)
            assert len(outcome.finding.anchor_us) == len(outcome.finding.candidate_us) == 3


async def test_candidate_that_raises_does_not_spoil_the_others() -> None:
    bad = candidate(name="bad")
    machine = Machine(times(90.0), fails=frozenset({bad.id}))
    outcomes = await QuickTiming().run(task(), (BASE, FAST, bad), 3, machine.submit)
    assert isinstance(outcomes[1], Passed)
    assert isinstance(outcomes[2], Failed)


async def test_audit_measures_again_in_one_fresh_process() -> None:
    machine = Machine(times(80.0))
    (outcome,) = await Audit().run(task(), (FAST,), 0, machine.submit)
    assert isinstance(outcome, Passed)
    assert isinstance(outcome.finding, Proof)
    assert outcome.finding.check is not None
    ((job, lane),) = machine.jobs
    assert isinstance(job, BatchJob)
    assert lane is Lane.FRESH_DEVICE
    assert all(item.seed != task().seed for item in job.jobs if hasattr(item, "seed"))


async def test_audit_rejects_a_candidate_that_slows_the_baseline_beside_it() -> None:
    machine = Machine(times(80.0))
    original = machine._reply

    def reply(job):  # the baseline alone takes half of what it takes beside the candidate
        answer = original(job)
        if hasattr(job, "sources") and len(job.sources) == 1:
            halved = tuple(us / 2 for us in answer.samples_us[0])
            return dataclasses.replace(answer, samples_us=(halved,))
        return answer

    machine._reply = reply  # type: ignore[method-assign]
    (outcome,) = await Audit().run(task(), (FAST,), 0, machine.submit)
    assert isinstance(outcome, Failed)
    assert isinstance(outcome.verdict, Rejected)
    assert "alone" in outcome.verdict.reason


async def test_audit_rejects_what_is_wrong_on_fresh_inputs() -> None:
    mismatch = Mismatch("x=f32[7]", "normal", 3, "out", (1,), 1.0, 2.0, 0.1, "too far")
    machine = Machine(times(80.0), mismatch=mismatch)
    (outcome,) = await Audit().run(task(), (FAST,), 0, machine.submit)
    assert isinstance(outcome, Failed)
    assert outcome.verdict == Incorrect(mismatch)
