"""Asks workers for everything that is known of a unit without a GPU, and keeps the answers.

The compiler is asked once for all kernels that one entry launches; beside it the interpreter counts
accesses at the workload's real sizes. Without a workload that runs, a launch is inferred from the
text. Nothing here raises for what user code does: it becomes a refusal or a note.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
import math
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar, assert_never

from search_engine.archive.facts_cache import FactsStore
from search_engine.archive.facts_key import WorkloadRun, code_key, trace_key
from search_engine.archive.facts_store import CodeEntry, KeptFacts, TraceEntry
from search_engine.domain.access import LaunchTrace
from search_engine.domain.code import LaunchCode
from search_engine.domain.job import (
    AssumedLaunch,
    Completed,
    Crashed,
    Expired,
    InspectJob,
    InspectReply,
    JobResult,
    Lane,
    Listing,
    Refusal,
    RefusalKind,
    Source,
    TraceJob,
    TraceReply,
)
from search_engine.domain.kernel import Module, Unit
from search_engine.domain.ports import Executor
from search_engine.domain.workload import Case, TensorArgument, Workload
from search_engine.frontends.assumed import assumed_launch
from search_engine.source import make_source

Reply = TypeVar("Reply", InspectReply, TraceReply)
Entry = TypeVar("Entry", CodeEntry, TraceEntry)

COMPILE_SECONDS = 60.0
TRACE_SECONDS = 20.0

_BITS = {"f64": 64, "i64": 64, "u64": 64, "f32": 32, "i32": 32, "u32": 32}
_ANOTHER_WAY = (RefusalKind.WORKLOAD, RefusalKind.RUNTIME, RefusalKind.UNSUPPORTED)
"""Refusals for which the workload is to blame."""


class LaunchSource(enum.Enum):
    """What the compiled launches are."""

    WORKLOAD = "workload"
    ASSUMED = "assumed"
    """Inferred from the text."""


@dataclass(frozen=True, slots=True)
class UnitFacts:
    """Everything known of one unit for one target.

    ``refusal`` says why there are no launches, or, where assumed ones had to stand in, why those of
    the workload could not be compiled. ``notes`` are sentences on what is uncertain or missing.
    """

    unit: Unit
    target: str
    source: LaunchSource = LaunchSource.ASSUMED
    workload: Workload | None = None
    case: Case | None = None
    launches: tuple[LaunchCode, ...] = ()
    traces: tuple[LaunchTrace, ...] = ()
    refusal: Refusal | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Asked:
    """The file that units are asked about; ``context`` is its ``module_context``."""

    module: Module
    context: str
    workloads: tuple[Workload, ...]
    target: str
    dropped: Callable[[], bool] = lambda: False
    """Answers true once nothing more shall be started."""


class DroppedError(Exception):
    """What was asked for is not wanted any more."""


class FactsGatherer:
    """Asks one interpreter's workers. ``environment`` is the interpreter's fingerprint.

    ``slots`` limit how many entries are compiled at once; what is known already needs none.
    """

    def __init__(
        self, executor: Executor, store: FactsStore, environment: str, slots: asyncio.Semaphore
    ) -> None:
        self._executor = executor
        self._kept = KeptFacts(store)
        self._environment = environment
        self._slots = slots
        self._running = 0
        self._last_run = time.monotonic()

    def begin(self) -> None:
        """Something will be asked: the time of idleness begins anew."""
        self._last_run = time.monotonic()

    def idle_seconds(self) -> float:
        """Time since something was run or about to be; 0 while something is."""
        return 0.0 if self._running else time.monotonic() - self._last_run

    async def gather(self, asked: Asked, units: Sequence[Unit]) -> tuple[UnitFacts, ...]:
        """Facts of units of one entry, in their order; one job serves all of them.

        Raises DroppedError.
        """
        run = heaviest_run(units[0], asked.workloads)
        if run is None:
            alone = [UnitFacts(unit, asked.target) for unit in units]
            return tuple([await self._assumed(asked, facts) for facts in alone])
        codes = self._known_codes(asked, units, run)
        traces = self._known_traces(asked, units, run)
        if codes is None or traces is None:
            async with self._slot(asked):
                codes, traces = await asyncio.gather(
                    self._codes(asked, units, run), self._traces(asked, units, run)
                )
        found: list[UnitFacts] = []
        for unit, code, trace in zip(units, codes, traces, strict=True):
            facts = _from_workload(unit, asked.target, run, code, trace)
            alone = _needs_assumption(unit, code)
            found.append(await self._assumed(asked, facts) if alone else facts)
        return tuple(found)

    async def listing(self, asked: Asked, unit: Unit) -> Listing | Refusal:
        """Annotated machine code of the unit's kernel; of several launches the first one."""
        async with self._slot(asked):
            return await self._listing(asked, unit)

    async def _listing(self, asked: Asked, unit: Unit) -> Listing | Refusal:
        run = heaviest_run(unit, asked.workloads)
        refusal = None
        if run is not None:
            reply = await self._inspect(replace(_workload_job(asked, run), listing=True))
            refusal = _refusal_of(reply, unit)
            if (found := _listing(reply, unit)) is not None:
                return found
            if refusal is not None and not _another_way(refusal):
                return refusal
        launch = assumed_launch(asked.module, unit)
        if isinstance(launch, str):
            return refusal or Refusal(RefusalKind.UNSUPPORTED, launch)
        reply = await self._inspect(replace(_assumed_job(asked, unit, launch), listing=True))
        missing = Refusal(RefusalKind.UNSUPPORTED, f"{unit.kernel.name} has no machine code")
        return _listing(reply, unit) or _refusal_of(reply, unit) or missing

    @contextlib.asynccontextmanager
    async def _slot(self, asked: Asked) -> AsyncGenerator[None]:
        async with self._slots:
            if asked.dropped():
                raise DroppedError
            self._running += 1
            try:
                yield
            finally:
                self._running -= 1
                self._last_run = time.monotonic()

    def _known_codes(
        self, asked: Asked, units: Sequence[Unit], run: WorkloadRun
    ) -> Sequence[CodeEntry] | None:
        """What is kept of all units; None if something is missing."""
        kept = (self._kept.code(self._code_key(asked, u, run), asked.module, u) for u in units)
        return _complete(kept)

    def _known_traces(
        self, asked: Asked, units: Sequence[Unit], run: WorkloadRun
    ) -> Sequence[TraceEntry] | None:
        kept = (self._kept.trace(self._trace_key(asked, u, run), asked.module, u) for u in units)
        return _complete(kept)

    async def _codes(
        self, asked: Asked, units: Sequence[Unit], run: WorkloadRun
    ) -> Sequence[CodeEntry]:
        known = self._known_codes(asked, units, run)
        if known is not None:
            return known
        reply = await self._inspect(_workload_job(asked, run))
        made = [_code_entry(reply, unit) for unit in units]
        for unit, entry in zip(units, made, strict=True):
            self._kept.save(self._code_key(asked, unit, run), asked.module, unit, entry)
        return made

    async def _traces(
        self, asked: Asked, units: Sequence[Unit], run: WorkloadRun
    ) -> Sequence[TraceEntry]:
        known = self._known_traces(asked, units, run)  # for another target, in the meantime
        if known is not None:
            return known
        job = TraceJob(_source(asked, run.workload.entry), run.workload, run.case)
        result = await self._executor.run(job, Lane.INTERPRET, TRACE_SECONDS)
        reply = _reply(result, TraceReply, "counting accesses")
        made = [_trace_entry(reply, unit) for unit in units]
        for unit, entry in zip(units, made, strict=True):
            self._kept.save(self._trace_key(asked, unit, run), asked.module, unit, entry)
        return made

    async def _assumed(self, asked: Asked, facts: UnitFacts) -> UnitFacts:
        """The facts with what the compiler makes of a launch that is inferred from the text."""
        unit = facts.unit
        launch = assumed_launch(asked.module, unit)
        if isinstance(launch, str):
            return replace(facts, notes=(*facts.notes, f"no launch can be assumed: {launch}"))
        key = self._code_key(asked, unit, launch)
        entry = self._kept.code(key, asked.module, unit)
        if entry is None:
            async with self._slot(asked):
                entry = self._kept.code(key, asked.module, unit)  # an earlier request may have it
                if entry is None:
                    entry = _code_entry(
                        await self._inspect(_assumed_job(asked, unit, launch)), unit
                    )
                    self._kept.save(key, asked.module, unit, entry)
        return replace(
            facts,
            source=LaunchSource.ASSUMED,
            launches=entry.launches,
            refusal=facts.refusal or entry.refusal,
            notes=_unique((*facts.notes, *launch.notes, *_launch_notes(entry.launches))),
        )

    def _code_key(self, asked: Asked, unit: Unit, run: WorkloadRun | AssumedLaunch) -> str:
        return code_key(unit, asked.context, run, asked.target, self._environment)

    def _trace_key(self, asked: Asked, unit: Unit, run: WorkloadRun) -> str:
        return trace_key(unit, asked.context, run, self._environment)

    async def _inspect(self, job: InspectJob) -> InspectReply | Refusal:
        result = await self._executor.run(job, Lane.COMPILE, COMPILE_SECONDS)
        return _reply(result, InspectReply, "compiling")


def heaviest_run(unit: Unit, workloads: tuple[Workload, ...]) -> WorkloadRun | None:
    """The case of the largest weight, of those the largest one, of the unit's first workload.

    None if there is no workload, or none that says how to call a method.
    """
    if unit.entry is None:
        return None
    name = unit.entry.qualified_name
    workload = next((w for w in workloads if w.entry == name and w.cases), None)
    if workload is None or (unit.entry.method and workload.call is None):
        return None
    cases = workload.cases
    case = max(workload.timed, key=lambda i: (cases[i].weight, _bits(cases[i])))
    return WorkloadRun(workload, case)


def _bits(case: Case) -> int:
    tensors = (item for item in case.arguments if isinstance(item, TensorArgument))
    return sum(math.prod(item.shape) * _BITS.get(item.dtype, 16) for item in tensors)


def _from_workload(
    unit: Unit, target: str, run: WorkloadRun, code: CodeEntry, trace: TraceEntry
) -> UnitFacts:
    notes = [*_launch_notes(code.launches), *(note for t in trace.launches for note in t.notes)]
    if trace.refusal is not None and code.refusal is None:
        notes.append(f"accesses were not counted: {trace.refusal.message}")
    return UnitFacts(
        unit, target, LaunchSource.WORKLOAD, run.workload, run.arguments,
        code.launches, trace.launches, code.refusal, _unique(notes),
    )  # fmt: skip


def _needs_assumption(unit: Unit, code: CodeEntry) -> bool:
    """True if the workload told nothing of this kernel, for no fault of the kernel's own."""
    if code.launches:
        return False
    refusal = code.refusal
    if refusal is None or _another_way(refusal):
        return True
    line = refusal.line
    if refusal.kind is not RefusalKind.COMPILE or line is None:
        return False
    own = (unit.kernel, *unit.helpers)
    return not any(part.span.line <= line <= part.span.end_line for part in own) and any(
        part.span.line <= line <= part.span.end_line for part in unit.siblings
    )


def _another_way(refusal: Refusal) -> bool:
    """True if an assumed launch may compile where the workload's did not."""
    return refusal.kind in _ANOTHER_WAY and not refusal.fatal


def _code_entry(reply: InspectReply | Refusal, unit: Unit) -> CodeEntry:
    if isinstance(reply, Refusal):
        return CodeEntry((), reply)
    launches = tuple(code for code in reply.launches if _is_of(unit, code.facts.kernel))
    return CodeEntry(launches, None if launches else _refusal_of(reply, unit))


def _trace_entry(reply: TraceReply | Refusal, unit: Unit) -> TraceEntry:
    if isinstance(reply, Refusal):
        return TraceEntry((), reply)
    return TraceEntry(tuple(trace for trace in reply.launches if _is_of(unit, trace.kernel)))


def _refusal_of(reply: InspectReply | Refusal, unit: Unit) -> Refusal | None:
    if isinstance(reply, Refusal):
        return reply
    return next((refusal for name, refusal in reply.failures if _is_of(unit, name)), None)


def _listing(reply: InspectReply | Refusal, unit: Unit) -> Listing | None:
    if isinstance(reply, Refusal):
        return None
    return next((item for item in reply.listings if _is_of(unit, item.kernel)), None)


def _is_of(unit: Unit, name: str) -> bool:
    return name in (unit.kernel.name, unit.kernel.qualified_name)


def _launch_notes(launches: Iterable[LaunchCode]) -> list[str]:
    return [note for launch in launches for note in launch.notes]


def _unique(notes: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(notes))


def _complete(entries: Iterable[Entry | None]) -> Sequence[Entry] | None:
    found = list(entries)
    known = [entry for entry in found if entry is not None]
    return known if len(known) == len(found) else None


def _workload_job(asked: Asked, run: WorkloadRun) -> InspectJob:
    return InspectJob(_source(asked, run.workload.entry), run.workload, run.case, asked.target)


def _assumed_job(asked: Asked, unit: Unit, launch: AssumedLaunch) -> InspectJob:
    entry = unit.entry.qualified_name if unit.entry is not None else ""
    return InspectJob(_source(asked, entry), None, 0, asked.target, (launch,))


def _source(asked: Asked, entry: str) -> Source:
    return make_source("facts", Path(asked.module.path), asked.module.text, entry)


def _reply(result: JobResult, kind: type[Reply], what: str) -> Reply | Refusal:
    """The reply, or what came instead as a refusal."""
    match result:
        case Completed(reply=reply):
            if isinstance(reply, kind | Refusal):
                return reply
            message = f"the worker answered {what} with {type(reply).__name__}"
        case Crashed(detail=detail):
            first = (detail.strip().splitlines() or ["no reason is known"])[0]
            message = f"the worker died while {what}: {first}"
        case Expired(deadline_seconds=seconds):
            message = f"{what} took more than {seconds:.0f} s"
        case _:
            assert_never(result)
    return Refusal(RefusalKind.RUNTIME, message, fatal=True)
