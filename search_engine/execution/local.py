"""The executor that runs jobs in worker processes on this machine."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import assert_never

from search_engine.domain.job import (
    CompileJob,
    Completed,
    InspectJob,
    Job,
    JobResult,
    Lane,
    Refusal,
    RefusalKind,
)
from search_engine.execution.environment import scrubbed
from search_engine.execution.pool import FreshWorkers, WorkerPool
from search_engine.execution.staging import stage
from search_engine.execution.worker_process import Recipe, StartError, WorkerProcess, start

IMPORTS = ("torch", "triton", "triton.language")
"""Modules that workers import before their first job, if the interpreter has them."""

_FILE_BYTES = 4 * 1024**3
_HIDDEN_DEVICES = {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": ""}


class LocalExecutor:
    """Implements ``domain.ports.Executor`` with processes in the user's interpreter.

    Compile workers live in a pool and each serves one target; the device worker lives until a
    job kills it; fresh device jobs get a new process. Both kinds of device worker are drawn from
    one spare that is kept warm: modules imported, no device touched. Deadlines count from the
    moment a ready worker gets the job. Compile and interpreter workers see no card at all.
    ``scratch`` holds temporary files and the compile cache that compile and device workers share.
    """

    def __init__(
        self,
        python: str,
        cwd: Path,
        env: Mapping[str, str] | None = None,
        *,
        compile_workers: int = 1,
        scratch: Path,
        interpret_workers: int = 1,
        cache_folder: Path | None = None,
        nice: int = 10,
        memory_bytes: int | None = None,
        imports: tuple[str, ...] = IMPORTS,
    ) -> None:
        self._python = python
        self._cwd = cwd
        self._extra = dict(env or {})
        self._scratch = scratch
        self._cache_folder = cache_folder
        self._nice = nice
        self._memory_bytes = memory_bytes
        self._imports = imports
        self._compile = WorkerPool(lambda: self._start(Lane.COMPILE), compile_workers)
        self._interpret = WorkerPool(lambda: self._start(Lane.INTERPRET), interpret_workers)
        self._fresh = FreshWorkers(lambda: self._start(Lane.FRESH_DEVICE))
        self._device = WorkerPool(self._fresh.draw, 1)
        self._device_lock = asyncio.Lock()
        self._starting: set[asyncio.Future[WorkerProcess]] = set()
        self._closed = False

    async def run(self, job: Job, lane: Lane, deadline_seconds: float) -> JobResult:
        """Run one job. Never raises for what a job does; a cancelled await kills the job."""
        try:
            return await self._run(job, lane, deadline_seconds)
        except StartError as error:
            message = (
                f"The worker could not start with {self._python}: {error}. "
                "The setting `kernelLsp.worker.python` chooses the interpreter."
            )
            return Completed(Refusal(RefusalKind.ENVIRONMENT, message), 0.0)

    async def prepare(self, lane: Lane, target: str = "") -> None:
        """Start a worker ahead of its first job, so that imports are over by then."""
        match lane:
            case Lane.COMPILE:
                await self._compile.prepare(target)
            case Lane.INTERPRET:
                await self._interpret.prepare("")
            case Lane.DEVICE:
                await self._device.prepare("")
            case Lane.FRESH_DEVICE:
                self._fresh.prepare()
            case _:
                assert_never(lane)

    async def close(self) -> None:
        """Kill every worker with its descendants, wait until none is left, drop temporary files."""
        self._closed = True
        await self._stop_starting()
        await asyncio.gather(
            self._compile.close(),
            self._interpret.close(),
            self._device.close(),
            self._fresh.close(),
        )
        shutil.rmtree(self._scratch / "tmp", ignore_errors=True)

    async def _run(self, job: Job, lane: Lane, deadline_seconds: float) -> JobResult:
        match lane:
            case Lane.COMPILE:
                key = job.target if isinstance(job, CompileJob | InspectJob) else ""
                return await self._compile.run(job, key, deadline_seconds)
            case Lane.INTERPRET:
                return await self._interpret.run(job, "", deadline_seconds)
            case Lane.DEVICE:
                async with self._device_lock:
                    return await self._device.run(job, "", deadline_seconds)
            case Lane.FRESH_DEVICE:
                async with self._device_lock:
                    return await self._fresh.run(job, deadline_seconds)
            case _:
                assert_never(lane)

    async def _start(self, lane: Lane) -> WorkerProcess:
        if self._closed:
            raise StartError("the executor is closed")
        starting = asyncio.ensure_future(start(self._recipe(lane)))
        self._starting.add(starting)
        try:
            return await starting
        except asyncio.CancelledError:
            if self._closed and starting.cancelled():
                raise StartError("the executor is closed") from None
            raise
        finally:
            self._starting.discard(starting)

    async def _stop_starting(self) -> None:
        starting = tuple(self._starting)
        for task in starting:
            task.cancel()
        await asyncio.gather(*starting, return_exceptions=True)

    def _recipe(self, lane: Lane) -> Recipe:
        background = lane in (Lane.COMPILE, Lane.INTERPRET)
        return Recipe(
            python=self._python,
            stage=stage(self._cache_folder),
            root=self._cwd,
            environment=self._environment(lane),
            warm=self._imports,
            nice=self._nice if background else 0,
            memory_bytes=self._memory_bytes if background else None,
            file_bytes=_FILE_BYTES,
        )

    def _environment(self, lane: Lane) -> dict[str, str]:
        temporary = self._scratch / "tmp"
        temporary.mkdir(parents=True, exist_ok=True)
        environment = {**scrubbed(os.environ), **self._extra}
        environment.pop("TRITON_INTERPRET", None)
        environment["TMPDIR"] = str(temporary)
        environment["TRITON_CACHE_DIR"] = str(self._scratch / "triton")
        environment["TORCHINDUCTOR_CACHE_DIR"] = str(self._scratch / "inductor")
        if lane is Lane.INTERPRET:
            environment["TRITON_INTERPRET"] = "1"
        if lane in (Lane.COMPILE, Lane.INTERPRET):
            environment.update(_HIDDEN_DEVICES)
        return environment
