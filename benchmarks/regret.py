"""What the economy of the ladder costs: its choice against the space measured in full.

Used by ``kernels.py --regret``: every candidate that compiled and passed smoke is timed for 20
interleaved rounds, twice, in one process; the search's choice is compared with the best of them.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from search_engine.domain.job import (
    Completed,
    Job,
    JobResult,
    Lane,
    Source,
    TimeJob,
    TimeReply,
)
from search_engine.domain.run import RunReport
from search_engine.domain.statistics import median
from search_engine.domain.workload import Workload
from search_engine.execution.local import LocalExecutor

_ROUNDS = 20
_PASSES = (1, 2)


class Recording(LocalExecutor):
    """Remembers every version that was timed: those that compiled and passed smoke."""

    timed: dict[str, Source] = {}  # noqa: RUF012 - one run at a time in this program
    case = 0

    async def run(self, job: Job, lane: Lane, deadline_seconds: float) -> JobResult:
        """As the executor."""
        if isinstance(job, TimeJob) and lane is Lane.DEVICE:
            self.timed.update({source.id: source for source in job.sources})
            Recording.case = job.case
        return await super().run(job, lane, deadline_seconds)


async def full_measurement(
    report: RunReport, baseline: str, workload: Workload, root: Path, python: str
) -> dict[str, object]:
    """Time the whole space of the last run. ``baseline`` is the id chosen if nothing improved."""
    sources = tuple(Recording.timed.values())
    case = max(range(len(workload.cases)), key=lambda i: (workload.cases[i].weight, -i))
    with tempfile.TemporaryDirectory() as scratch:
        executor = LocalExecutor(python, root, scratch=Path(scratch))
        try:
            passes = [await _full(executor, sources, workload, case, seed) for seed in _PASSES]
        finally:
            await executor.close()
    samples = {s.id: [us for p in passes for us in _samples(p, s.id)] for s in sources}
    times = {key: median(values) for key, values in samples.items() if values}
    best = min(times, key=lambda key: times[key])
    chosen = report.best.id if report.best is not None else baseline
    return {
        "space": len(times),
        "best_us": times[best],
        "chosen_us": times[chosen],
        "regret": times[chosen] / times[best] - 1.0,
        "screening_device_seconds": report.spend.screening_device_seconds,
        "full_device_seconds": passes[0].device_seconds,
        "times_us": times,
    }


async def _full(
    executor: LocalExecutor, sources: tuple[Source, ...], workload: Workload, case: int, seed: int
) -> TimeReply:
    job = TimeJob(sources, workload, case, _ROUNDS, True, seed)
    result = await executor.run(job, Lane.DEVICE, 300.0)
    if not isinstance(result, Completed) or not isinstance(result.reply, TimeReply):
        raise SystemExit(f"could not be timed: {result!r}"[:2000])
    return result.reply


def _samples(reply: TimeReply, source: str) -> tuple[float, ...]:
    return reply.samples_us[reply.sources.index(source)] if source in reply.sources else ()
