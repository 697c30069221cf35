"""Compile every launch of an entry and report what the compiler made of each line."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable

from search_engine.domain.candidate import python_text
from search_engine.domain.job import AssumedLaunch, InspectJob, InspectReply, Refusal, Source
from search_engine.worker import fake_torch
from search_engine.worker.attempt import Attempt
from search_engine.worker.code_places import UserText, user_text
from search_engine.worker.code_rows import listing
from search_engine.worker.compile import driver_for, refusal_for, run_entry
from search_engine.worker.fake_driver import CapturedLaunch, FakeDriver
from search_engine.worker.launch_code import KernelLaunch, launch_code

_UNKNOWN_GRID = (0, 0, 0)


def inspect_launches(job: InspectJob) -> InspectReply | Refusal:
    """Report every distinct launch by source line.

    Refuses as ``compile_source`` does; an assumed launch that does not compile is one of the
    reply's ``failures``. Without a disassembler the launches have no ``lines``, and a note says
    what to install.
    """
    started = time.monotonic()
    driver = driver_for(job.target)
    if isinstance(driver, Refusal):
        return driver
    user = user_text(job.source)
    failures: tuple[tuple[str, Refusal], ...] = ()
    if job.assumed or job.workload is None:
        launches, failures = _assumed(job, driver)
    else:
        refusal = run_entry(driver, job.source, job.workload, job.workload.cases[job.case])
        if refusal is not None:
            return refusal
        launches = _distinct(driver.launches, user)
    return _reply(job, driver, launches, failures, time.monotonic() - started)


def _reply(
    job: InspectJob,
    driver: FakeDriver,
    launches: Iterable[KernelLaunch],
    failures: tuple[tuple[str, Refusal], ...],
    compile_seconds: float,
) -> InspectReply:
    import triton

    text, user = python_text(job.source.text), user_text(job.source)
    found = [(launch, *launch_code(launch, text, user)) for launch in launches]
    seconds = driver.stage_seconds
    return InspectReply(
        target=job.target,
        launches=tuple(
            dataclasses.replace(code, stage_seconds=seconds.get(launch.compiled.hash, ()))
            for launch, code, _ in found
        ),
        listings=tuple(listing(code.facts.kernel, rows) for _, code, rows in found if job.listing),
        triton=str(triton.__version__),
        compile_seconds=compile_seconds,
        failures=failures,
    )


def _distinct(captured: Iterable[CapturedLaunch], user: UserText) -> list[KernelLaunch]:
    """The first launch of each compiled kernel, grid and line."""
    found: dict[object, KernelLaunch] = {}
    for item in captured:
        line = user.line(item.stack)
        launch = KernelLaunch(item.compiled, item.grid, line, item.values)
        found.setdefault((item.compiled.hash, item.grid, line), launch)
    return list(found.values())


def _assumed(
    job: InspectJob, driver: FakeDriver
) -> tuple[list[KernelLaunch], tuple[tuple[str, Refusal], ...]]:
    launches: list[KernelLaunch] = []
    failures: list[tuple[str, Refusal]] = []
    with fake_torch.cuda_as("meta"):
        for item in job.assumed:
            with Attempt() as attempt:
                launches.append(_settled(job.source, item, driver))
            if attempt.error is not None:
                failures.append((item.kernel, refusal_for(attempt.error, job.source)))
    return launches, tuple(failures)


def _settled(source: Source, item: AssumedLaunch, driver: FakeDriver) -> KernelLaunch:
    """Compile one inferred launch. Raises what the compiler raises."""
    from search_engine.worker.assumed import settle
    from search_engine.worker.assumed_module import load_or_extract

    module, reason = load_or_extract(source, item.kernel)
    settled = settle(module, item, driver)
    given = {argument.name: argument.value for argument in settled.launch.arguments}
    values = [given.get(parameter.name) for parameter in settled.compiled.src.fn.params]
    alone = f"The kernel was compiled without its module, which cannot be imported: {reason}"
    notes = settled.launch.notes if reason is None else (*settled.launch.notes, alone)
    return KernelLaunch(settled.compiled, _UNKNOWN_GRID, item.line, values, True, notes)
