"""An executor that keeps answers in the archive and serves them again when a run is resumed."""

from __future__ import annotations

from search_engine.archive.sqlite import SqliteArchive
from search_engine.domain.job import Completed, Job, JobResult, Lane, ProbeJob
from search_engine.domain.ports import Executor
from search_engine.domain.run import RunId


class ArchivedExecutor:
    """Wraps an executor for one run. Jobs answered before the run was cut off cost nothing."""

    def __init__(self, inner: Executor, archive: SqliteArchive, run: RunId) -> None:
        self._inner = inner
        self._archive = archive
        self._run = run
        self.replayed = 0

    async def run(self, job: Job, lane: Lane, deadline_seconds: float) -> JobResult:
        """As the inner executor, unless this run has the answer already."""
        if isinstance(job, ProbeJob):
            return await self._inner.run(job, lane, deadline_seconds)
        known = self._archive.evaluation(self._run, job)
        if known is not None:
            self.replayed += 1
            return known
        result = await self._inner.run(job, lane, deadline_seconds)
        if isinstance(result, Completed):
            self._archive.append_evaluation(self._run, job, result)
        return result

    async def close(self) -> None:
        """Close the inner executor; the archive belongs to the caller."""
        await self._inner.close()
