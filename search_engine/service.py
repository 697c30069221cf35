"""Composition root and public API: a request becomes a wired run that emits events.

The language server and the command line import this module and ``search_engine.domain`` only.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

from search_engine.archive.executor import ArchivedExecutor
from search_engine.archive.facts_cache import FactsCache
from search_engine.archive.sqlite import ArchiveError, RunKey, SqliteArchive
from search_engine.diagnosis import DEFAULT_TARGET, Diagnosis, known_targets
from search_engine.domain.codec import encode
from search_engine.domain.event import Finished, StateChanged
from search_engine.domain.job import Completed, Lane, ProbeJob, ProbeReply, Refusal
from search_engine.domain.ports import Executor, Listener
from search_engine.domain.run import (
    ExitReason,
    Outcome,
    RunId,
    RunReport,
    RunState,
    Spend,
)
from search_engine.domain.target import Device, Environment, Target
from search_engine.edits import hunks, transplant, unified_diff
from search_engine.execution.capacity import compile_workers, interpret_workers, memory_bytes
from search_engine.execution.device_lock import hold
from search_engine.execution.gpu_load import GpuLoad, gpu_load
from search_engine.execution.interpreter_choice import find_python
from search_engine.execution.local import LocalExecutor
from search_engine.execution.recording import RecordSummary, record
from search_engine.execution.scratch import scratch_folder
from search_engine.execution.signals import on_termination
from search_engine.execution.staging import default_cache_folder
from search_engine.frontends.ignore_comments import ignore_comments
from search_engine.frontends.triton import parse_module
from search_engine.frontends.unit import find_unit
from search_engine.frontends.workload import declare, parse_workloads, workload_refusal
from search_engine.interpreters import Interpreters, local_executors
from search_engine.report import card, document, make_report, stopped_report
from search_engine.request import (
    Prepared,
    RequestError,
    RunRequest,
    all_workloads,
    prepare,
    read_module,
    request_from_json,
)
from search_engine.runner import BaselineRefused, Runner
from search_engine.targets.registry import target_named

__all__ = [
    "ArchiveError",
    "Diagnosis",
    "RecordSummary",
    "RequestError",
    "RunRequest",
    "all_workloads",
    "archive_runs",
    "card",
    "declare",
    "diagnosis",
    "document",
    "failed_report",
    "find_python",
    "find_unit",
    "hunks",
    "ignore_comments",
    "known_targets",
    "on_termination",
    "optimize",
    "parse_module",
    "parse_workloads",
    "prepare",
    "probe",
    "read_module",
    "record",
    "request_from_json",
    "transplant",
    "unified_diff",
    "workload_refusal",
]

_PROBE_DEADLINE_SECONDS = 60.0
_BUSY_WAIT_SECONDS = 60.0
_BUSY_POLL_SECONDS = 2.0


async def optimize(request: RunRequest, emit: Listener) -> RunReport:
    """Run one search. Emits events; the last one is ``Finished`` with the returned report.

    Raises RequestError for a request that cannot be served. A cancelled await kills every worker
    and leaves what was verified in the archive.
    """
    prepared = prepare(request)
    emit(StateChanged(RunState.QUEUED, "starting a worker", 0.0))
    async with _executor(request) as executor:
        report = await _optimize(prepared, executor, emit)
    emit(Finished(report))
    return report


async def probe(python: Path, cwd: Path) -> ProbeReply | Refusal | str:
    """What is in an interpreter: versions and devices; a refusal or a sentence if it fails."""
    with scratch_folder() as scratch:
        executor = LocalExecutor(str(python), cwd, scratch=scratch)
        try:
            return await _probe(executor)
        finally:
            await executor.close()


@contextlib.asynccontextmanager
async def diagnosis() -> AsyncGenerator[Diagnosis]:
    """What answers requests about files; at the end every worker is gone.

    Facts are kept in the user's cache folder, for this process and others.
    """
    store = FactsCache(default_cache_folder() / "facts.sqlite")
    with contextlib.closing(store), scratch_folder() as scratch:
        made = Diagnosis(Interpreters(store, local_executors(scratch), compile_workers()))
        try:
            yield made
        finally:
            await made.close()


def archive_runs(archive: Path, unit_hash: str) -> tuple[RunReport, ...]:
    """Runs of a unit in the archive, newest first; empty if there is no archive yet.

    A run that was cut off is reported as stopped, with the best of what it had verified.
    """
    if not archive.exists():
        return ()
    store = SqliteArchive(archive)
    try:
        return tuple(run.report or stopped_report(run) for run in store.runs(unit_hash))
    finally:
        store.close()


def failed_report(message: str, prepared: Prepared | None = None) -> Finished:
    """The last event of a run that could not be started or went wrong."""
    return Finished(
        RunReport(
            run=RunId("failed"),
            kernel=prepared.unit.kernel.qualified_name if prepared else "",
            path=str(prepared.request.path) if prepared else "",
            unit_hash=prepared.unit.hash if prepared else "",
            target="",
            device=None,
            outcome=Outcome.FAILED,
            exit_reason=ExitReason.FAULTED,
            message=message,
            baseline_us=None,
            best_us=None,
            best=None,
            evidence=None,
            spend=Spend(0.0, 0.0, 0),
            rungs={},
            diff="",
        )
    )


async def _optimize(prepared: Prepared, executor: LocalExecutor, emit: Listener) -> RunReport:
    likely = prepared.target.name if prepared.target is not None else DEFAULT_TARGET
    warm = [asyncio.create_task(executor.prepare(Lane.COMPILE, likely))]
    if not _device_files():
        warm.append(asyncio.create_task(executor.prepare(Lane.INTERPRET)))
    try:
        return await _probed(prepared, executor, emit)
    finally:
        for task in warm:
            task.cancel()


async def _probed(prepared: Prepared, executor: LocalExecutor, emit: Listener) -> RunReport:
    reply = await _probe(executor)
    if not isinstance(reply, ProbeReply):
        return _failed(reply.message if isinstance(reply, Refusal) else reply, prepared)
    if reply.problems:
        return _failed("; ".join(reply.problems), prepared)
    device = reply.devices[0] if reply.devices else None
    if device is not None and prepared.target is not None and device.target != prepared.target.name:
        device = None  # another target was asked for: compile and interpret only
    target = _target(prepared, device)
    environment = _environment(reply, device, target)
    async with contextlib.AsyncExitStack() as stack:
        if device is not None:
            spare = asyncio.create_task(executor.prepare(Lane.FRESH_DEVICE))
            stack.callback(spare.cancel)
            await stack.enter_async_context(hold(device.uuid, _waiting(emit)))
            await _wait_while_busy(device, emit)
        archive = _open_archive(prepared.request, emit)
        if archive is not None:
            stack.callback(archive.close)
        return await _search(prepared, executor, archive, environment, device, target, emit)


async def _search(
    prepared: Prepared, executor: Executor, archive: SqliteArchive | None,
    environment: Environment, device: Device | None, target: Target, emit: Listener,
) -> RunReport:  # fmt: skip
    run, resumed = RunId("unsaved"), False
    if archive is not None:
        run, resumed = archive.start_run(_key(prepared, environment, target))
        executor = ArchivedExecutor(executor, archive, run)
    if resumed:
        emit(StateChanged(RunState.QUEUED, "resuming a run that was cut off", 0.0))
    runner = Runner(prepared, executor, archive, run, environment, device, target, emit)
    try:
        result = await runner.run()
    except BaselineRefused as refusal:
        report = dataclasses.replace(
            _failed(str(refusal), prepared, refusal.refusal), spend=runner.spend()
        )
    else:
        report = make_report(prepared, runner, result, run, target.name, device, environment)
    if archive is not None:
        archive.finish_run(run, report)
    return report


@contextlib.asynccontextmanager
async def _executor(request: RunRequest) -> AsyncGenerator[LocalExecutor]:
    python = find_python(request.root, request.python)
    with scratch_folder() as scratch:
        executor = LocalExecutor(
            str(python),
            request.cwd or request.root,
            request.env,
            compile_workers=compile_workers(),
            memory_bytes=memory_bytes(),
            interpret_workers=interpret_workers(),
            scratch=scratch,
        )
        try:
            yield executor
        finally:
            await executor.close()


def _device_files() -> bool:
    """Whether a GPU's device file is there; a guess that only decides what is started early."""
    return Path("/dev/nvidiactl").exists() or Path("/dev/kfd").exists()


async def _probe(executor: Executor) -> ProbeReply | Refusal | str:
    result = await executor.run(ProbeJob(), Lane.DEVICE, _PROBE_DEADLINE_SECONDS)
    match result:
        case Completed(reply=ProbeReply() as reply):
            return reply
        case Completed(reply=Refusal() as refusal):
            return refusal
        case other:
            return f"the worker did not answer: {other}"


def _target(prepared: Prepared, device: Device | None) -> Target:
    if prepared.target is not None:
        return prepared.target
    try:
        return target_named(device.target if device is not None else DEFAULT_TARGET)
    except LookupError as error:
        raise RequestError(f"this device is not described yet: {error}") from error


def _environment(reply: ProbeReply, device: Device | None, target: Target) -> Environment:
    return Environment(
        device=device.name if device else None,
        driver=device.driver if device else None,
        python=reply.python,
        torch=reply.torch,
        triton=reply.triton,
        target=target.name,
    )


def _key(prepared: Prepared, environment: Environment, target: Target) -> RunKey:
    request = prepared.request
    return RunKey(
        unit_hash=prepared.unit.hash,
        kernel=prepared.unit.kernel.qualified_name,
        path=str(request.path),
        workload=repr(encode(prepared.workload)),
        target=target.name,
        environment=environment.key,
        effort=" ".join(
            (f"{request.effort.value} {prepared.budget} seed {request.seed}", *request.rules)
        ),
    )


def _open_archive(request: RunRequest, emit: Listener) -> SqliteArchive | None:
    if request.archive is None:
        return None
    try:
        return SqliteArchive(request.archive)
    except ArchiveError as error:
        emit(StateChanged(RunState.QUEUED, f"nothing will be kept: {error}", 0.0))
        return None


def _waiting(emit: Listener) -> Callable[[str], None]:
    def waiting(holder: str) -> None:
        emit(StateChanged(RunState.QUEUED, f"waiting for the GPU ({holder})", 0.0))

    return waiting


async def _wait_while_busy(device: Device, emit: Listener) -> None:
    """Wait up to a minute for other processes to leave the GPU; then measure under load."""
    waited = 0.0
    while True:
        load = await gpu_load(device.uuid)
        if load is None or not load.busy(frozenset({os.getpid()})):
            return
        if waited >= _BUSY_WAIT_SECONDS:
            detail = f"measuring under load: {_load(load)}"
            emit(StateChanged(RunState.QUEUED, detail, waited))
            return
        emit(StateChanged(RunState.QUEUED, f"GPU busy ({_load(load)}); waiting", waited))
        await asyncio.sleep(_BUSY_POLL_SECONDS)
        waited += _BUSY_POLL_SECONDS


def _load(load: GpuLoad) -> str:
    processes = ", ".join(f"pid {process}" for process in load.processes)
    return f"{processes}, {load.utilization_percent} %"


def _failed(message: str, prepared: Prepared, refusal: Refusal | None = None) -> RunReport:
    return dataclasses.replace(failed_report(message, prepared).report, refusal=refusal)
