"""Trace an entry at the sizes of its workload: where its programs go in memory, without memory.

Tensors are stand-ins with made-up addresses, a sample of each launch's programs runs on Triton's
CPU interpreter, and no access reaches memory. Loads give zeros, or the declared values where they
are integers; what that leaves uncertain is noted on each launch.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Generator
from pathlib import Path
from typing import Any

from search_engine.domain.job import Refusal, RefusalKind, TraceJob, TraceReply
from search_engine.worker import fake_torch, stand_ins
from search_engine.worker.attempt import Attempt
from search_engine.worker.extents import elements
from search_engine.worker.fake_driver import CARDS, FakeDriver, stop_benchmarking
from search_engine.worker.interpreter_faults import explained
from search_engine.worker.interpreter_repairs import repair
from search_engine.worker.loader import LoadError, load_fresh, scratch_file
from search_engine.worker.trace_interpreter import lacks
from search_engine.worker.trace_tracer import Tracer
from search_engine.worker.trace_values import MOST_FLOATS, KnownValues, observing

_CARD = CARDS["sm_90"]
"""What the entry is told about the device if it asks."""
_META = re.compile(r"\bmeta\b", re.IGNORECASE)
_HOST_VALUES = "the entry reads values on the host that are not known without running it"


def trace_launches(job: TraceJob) -> TraceReply | Refusal:
    """Sample the programs of every launch of the entry for one case, at its real sizes.

    Refuses with UNSUPPORTED for what the interpreter cannot do or the entry needs values for,
    WORKLOAD if nothing is launched or the arguments do not fit, RUNTIME for what the version
    raises, COMPILE or ENVIRONMENT if it does not load. Leaves the interpreter as it was.
    """
    os.environ["TRITON_INTERPRET"] = "1"  # before the version is decorated
    repair()
    stop_benchmarking()
    lacking = lacks()
    if lacking is not None:
        return Refusal(RefusalKind.UNSUPPORTED, f"this Triton's interpreter has no {lacking}")
    reply, needs_values = _traced(job, floats=False)
    if needs_values and elements(job.workload.cases[job.case]) <= MOST_FLOATS:
        reply, _ = _traced(job, floats=True)
    return reply


def _traced(job: TraceJob, floats: bool) -> tuple[TraceReply | Refusal, bool]:
    """The reply, and whether the entry ended because it asked for values of a stand-in."""
    known = KnownValues(floats)
    file = str(scratch_file(job.source))
    tracer = Tracer(job.source, file, known, job.most_programs, job.seconds)
    case = job.workload.cases[job.case]

    def prepare(arguments: dict[str, Any]) -> None:
        tracer.positioned.update(known.declare(arguments, case, Path(job.source.root)))

    with Attempt() as attempt, contextlib.ExitStack() as stack:
        for context in (_as_on_a_card(), tracer.active(), fake_torch.cuda_as("meta")):
            stack.enter_context(context)
        stack.enter_context(observing(tracer.space, known))
        module = load_fresh(job.source)
        stand_ins.call(module, job.source, job.workload, case, "meta", prepare)
    needs_values = _asks_for_values(attempt.error)
    return _reply(job, tracer, attempt.error, needs_values), needs_values


def _reply(
    job: TraceJob, tracer: Tracer, error: BaseException | None, needs_values: bool
) -> TraceReply | Refusal:
    if isinstance(error, LoadError):
        return error.refusal
    if needs_values:
        tracer.note(f"{_HOST_VALUES}: launches after that are missing")
    traces = tracer.traces()
    if traces and (error is None or needs_values):
        return TraceReply(traces)
    if error is not None and not needs_values:
        return explained(error, job.source)
    if tracer.refusals:
        return tracer.refusals[0]
    if error is not None:
        line = explained(error, job.source).line
        return Refusal(RefusalKind.UNSUPPORTED, _HOST_VALUES, line)
    text = f"`{job.source.entry}` launched no Triton kernel on this workload"
    return Refusal(RefusalKind.WORKLOAD, text)


def _asks_for_values(error: BaseException | None) -> bool:
    """True for what torch raises where a tensor without data is asked for it."""
    return isinstance(error, (RuntimeError, TypeError)) and bool(_META.search(str(error)))


@contextlib.contextmanager
def _as_on_a_card() -> Generator[None]:
    """User code finds a device, and a driver if it asks Triton for one."""
    from triton.runtime import driver

    before = dict(vars(driver))
    driver.set_active(FakeDriver(_CARD))  # type: ignore[arg-type]
    try:
        with fake_torch.installed(_CARD):
            yield
    finally:
        vars(driver).clear()
        vars(driver).update(before)
