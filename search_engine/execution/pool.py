"""A bounded set of workers that are reused, and a source of workers that are used once."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from search_engine.domain.job import Job, JobResult
from search_engine.execution.worker_process import StartError, WorkerProcess

Starter = Callable[[], Awaitable[WorkerProcess]]


class WorkerPool:
    """At most ``size`` workers. A worker serves one key only (a compile target) for its life."""

    def __init__(self, start: Starter, size: int) -> None:
        self._start = start
        self._slots = asyncio.Semaphore(size)
        self._size = size
        self._idle: list[tuple[str, WorkerProcess]] = []
        self._busy: set[WorkerProcess] = set()
        self._starting = 0

    async def run(self, job: Job, key: str, deadline_seconds: float) -> JobResult:
        """Run a job on a worker of ``key``, started if there is none. Raises StartError."""
        async with self._slots:
            worker = await self._take(key)
            try:
                return await worker.run(job, deadline_seconds)
            finally:
                self._busy.discard(worker)
                if worker.usable:
                    self._idle.append((key, worker))

    async def prepare(self, key: str) -> None:
        """Start an idle worker for ``key`` ahead of its first job, if there is room for one."""
        if any(kept == key for kept, _ in self._idle) or self._slots.locked():
            return
        async with self._slots:
            with contextlib.suppress(StartError):
                worker = await self._take(key)
                self._busy.discard(worker)
                self._idle.append((key, worker))

    async def close(self) -> None:
        """Kill every worker."""
        workers = [worker for _, worker in self._idle] + list(self._busy)
        self._idle.clear()
        await asyncio.gather(*(worker.kill() for worker in workers))

    async def _take(self, key: str) -> WorkerProcess:
        for index, (kept, worker) in enumerate(self._idle):
            if kept == key:
                del self._idle[index]
                self._busy.add(worker)
                return worker
        if self._idle and len(self._idle) + len(self._busy) + self._starting >= self._size:
            _, oldest = self._idle.pop(0)
            await oldest.kill()
        self._starting += 1
        try:
            worker = await self._start()
        finally:
            self._starting -= 1
        self._busy.add(worker)
        return worker


class FreshWorkers:
    """Each job gets a new process; the next one is started ahead, so that it is warm by then."""

    def __init__(self, start: Starter) -> None:
        self._start = start
        self._spare: asyncio.Task[WorkerProcess] | None = None
        self._drawing = asyncio.Lock()
        self._busy: set[WorkerProcess] = set()

    def prepare(self) -> None:
        """Begin to start the spare, unless there is one."""
        if self._spare is None:
            self._spare = asyncio.ensure_future(self._start())
            self._spare.add_done_callback(_retrieve)

    async def run(self, job: Job, deadline_seconds: float) -> JobResult:
        """Run a job in the spare, and replace the spare. Raises StartError."""
        worker = await self.draw()
        self._busy.add(worker)
        try:
            return await worker.run(job, deadline_seconds)
        finally:
            await asyncio.shield(worker.kill())
            self._busy.discard(worker)

    async def close(self) -> None:
        """Kill the spare and whoever works."""
        spare, self._spare = self._spare, None
        if spare is not None:
            spare.cancel()
            with contextlib.suppress(asyncio.CancelledError, StartError):
                self._busy.add(await spare)
        await asyncio.gather(*(worker.kill() for worker in self._busy))

    async def draw(self) -> WorkerProcess:
        """Hand the spare over, as soon as it is ready, and begin to start the next."""
        async with self._drawing:
            self.prepare()
            spare = self._spare
            assert spare is not None
            try:
                worker = await asyncio.shield(spare)
            except StartError:
                self._spare = None
                raise
            self._spare = None
        if worker.process.returncode is not None:  # it died while it waited
            await worker.kill()
            worker = await self._start()
        self.prepare()
        return worker


def _retrieve(task: asyncio.Task[WorkerProcess]) -> None:
    """Look at a spare's failure, so that asyncio does not warn: the next job reports it."""
    if not task.cancelled():
        task.exception()
