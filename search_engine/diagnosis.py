"""Requests about files become answers: text and facts, checks, what is hidden, one at a time.

One ``Diagnosis`` serves many requests and keeps the workers of the interpreters it was asked about
last, so that only the first question waits for their imports. Workers start when something has to
be compiled that no cache knows.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from pathlib import Path

from search_engine.archive.facts_key import module_context
from search_engine.diagnose import (
    facts_findings,
    no_interpreter,
    not_ignored,
    static_findings,
    without_answered,
)
from search_engine.domain.facts_message import (
    FactsRequest,
    ListingFound,
    ListingRequest,
    StaticFindings,
    UnitFindings,
)
from search_engine.domain.finding import Finding
from search_engine.domain.job import Refusal, RefusalKind
from search_engine.domain.kernel import Module, Unit
from search_engine.domain.workload import Workload
from search_engine.facts import Asked, DroppedError, FactsGatherer, UnitFacts, heaviest_run
from search_engine.frontends.ignore_comments import Ignored, ignore_comments
from search_engine.frontends.unit import find_unit
from search_engine.interpreters import Interpreters
from search_engine.predict.summary import summarize
from search_engine.request import RequestError, all_workloads, read_module
from search_engine.targets.registry import UnknownTargetError, target_named

DEFAULT_TARGET = "sm_90"
"""Compiled for where nothing says otherwise."""


class Diagnosis:
    """Answers requests with what ``interpreters`` make of them."""

    def __init__(self, interpreters: Interpreters) -> None:
        self._interpreters = interpreters

    async def answers(
        self, request: FactsRequest, cancelled: Callable[[], bool] = lambda: False
    ) -> AsyncGenerator[StaticFindings | UnitFindings]:
        """Everything about one file, as it becomes known. Raises RequestError first of all.

        Once ``cancelled`` answers true, nothing more is started; what runs is still answered.
        """
        targets = known_targets(request.targets or (DEFAULT_TARGET,))
        module = read_module(Path(request.path), request.text)
        workloads, problems = all_workloads(module, Path(request.root))
        file = _File(request, module, workloads, cancelled)
        static = file.shown(static_findings(module, workloads, problems))
        yield StaticFindings(request.id, static)
        units = _asked_units(module, request.kernels)
        if not request.compile or module.problems or not units:
            return
        gatherer = await self._gatherer(request)
        groups = [(target, group) for target in targets for group in _groups(units, workloads)]
        async with contextlib.aclosing(self._gathered(file, gatherer, groups)) as all_:
            async for facts in all_:
                yield file.answer(facts)
        corrected = file.corrected(static)
        if corrected != static:
            yield StaticFindings(request.id, corrected)

    async def listing(self, request: ListingRequest) -> ListingFound:
        """Annotated machine code of one kernel. Raises RequestError."""
        file = request.file
        (target,) = known_targets((request.target,))
        module = read_module(Path(file.path), file.text)
        unit = find_unit(module, request.kernel)
        if unit is None:
            raise RequestError(f"{file.path}: no kernel named {request.kernel}")
        workloads, _ = all_workloads(module, Path(file.root))
        gatherer = await self._gatherer(file)
        context = module_context(module, Path(file.root))
        found = await gatherer.listing(Asked(module, context, workloads, target), unit)
        if isinstance(found, Refusal):
            return ListingFound(request.id, request.kernel, target, problem=found.message)
        rows = [i for i, line in enumerate(found.lines) if line == request.line]
        row = rows[0] if rows and request.line is not None else None
        return ListingFound(request.id, request.kernel, target, found.text, found.lines, row)

    async def retire(self, idle_seconds: float) -> None:
        """End the workers that nothing was asked of for so long."""
        await self._interpreters.retire(idle_seconds)

    async def close(self) -> None:
        """End every worker."""
        await self._interpreters.close()

    async def _gatherer(self, request: FactsRequest) -> FactsGatherer:
        root = Path(request.root)
        cwd = Path(request.cwd) if request.cwd else root
        return await self._interpreters.gatherer(root, request.python, cwd, request.env)

    async def _gathered(
        self, file: _File, gatherer: FactsGatherer, groups: Sequence[tuple[str, tuple[Unit, ...]]]
    ) -> AsyncGenerator[UnitFacts]:  # fmt: skip
        tasks = [
            asyncio.create_task(file.gather(gatherer, target, units)) for target, units in groups
        ]
        try:
            for task in asyncio.as_completed(tasks):
                for facts in await task:
                    yield facts
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def known_targets(names: Iterable[str]) -> tuple[str, ...]:
    """The names without repeats. Raises RequestError for an unknown one, with the known ones."""
    try:
        return tuple(dict.fromkeys(target_named(name).name for name in names))
    except UnknownTargetError as error:
        raise RequestError(str(error)) from error


class _File:
    """What one request learns about its file."""

    def __init__(
        self, request: FactsRequest, module: Module, workloads: tuple[Workload, ...],
        dropped: Callable[[], bool],
    ) -> None:  # fmt: skip
        self._request = request
        self._module = module
        self._workloads = workloads
        self._dropped = dropped
        self._found: list[UnitFacts] = []
        self._said: set[tuple[str | None, str]] = set()
        self._no_interpreter: Refusal | None = None

    @functools.cached_property
    def _context(self) -> str:
        return module_context(self._module, Path(self._request.root))

    @functools.cached_property
    def _comments(self) -> tuple[Ignored, ...]:
        return ignore_comments(self._module)

    def shown(self, findings: Iterable[Finding]) -> tuple[Finding, ...]:
        """Those that neither a comment nor the request hides."""
        return not_ignored(findings, self._comments, self._request.ignore)

    async def gather(
        self, gatherer: FactsGatherer, target: str, units: tuple[Unit, ...]
    ) -> tuple[UnitFacts, ...]:
        """Facts of units that share an entry; nothing is asked once a module is known to lack."""
        asked = Asked(self._module, self._context, self._workloads, target, self._stopped)
        try:
            found = await gatherer.gather(asked, units)
        except DroppedError:
            if self._no_interpreter is None:
                return ()
            return tuple(UnitFacts(unit, target, refusal=self._no_interpreter) for unit in units)
        for facts in found:
            if facts.refusal is not None and facts.refusal.kind is RefusalKind.ENVIRONMENT:
                self._no_interpreter = facts.refusal
        return found

    def answer(self, facts: UnitFacts) -> UnitFindings:
        """One unit for one target, checked."""
        self._found.append(facts)
        kernel = facts.unit.kernel.qualified_name
        found = facts_findings(self._module, facts, self._request.everything)
        target = target_named(facts.target)
        return UnitFindings(
            id=self._request.id,
            kernel=kernel,
            unit_hash=facts.unit.hash,
            target=facts.target,
            summary=summarize(kernel, target, facts.launches, facts.traces),
            findings=tuple(item for item in self.shown(found) if self._is_new(item, facts)),
            notes=facts.notes,
            refusal=facts.refusal,
        )

    def corrected(self, static: tuple[Finding, ...]) -> tuple[Finding, ...]:
        """The static findings, now that it is known which kernels have data."""
        found = without_answered(static, self._found)
        if self._no_interpreter is None:
            return found
        reason = no_interpreter(self._module, self._no_interpreter)
        return (*found, *self.shown((reason,)))

    def _stopped(self) -> bool:
        return self._no_interpreter is not None or self._dropped()

    def _is_new(self, finding: Finding, facts: UnitFacts) -> bool:
        """One sentence on the file or the target is enough, however many kernels it is true of."""
        if finding.code == "KL002":
            of_all = facts.refusal is not None and facts.refusal.kind is RefusalKind.UNSUPPORTED
        else:
            inside = any(s.line <= finding.line <= s.end_line for s in facts.unit.spans)
            of_all = finding.code == "KL101" and not inside
        said = (finding.target, finding.message)
        if of_all and said in self._said:
            return False
        self._said.add(said)
        return True


def _asked_units(module: Module, kernels: tuple[str, ...] | None) -> tuple[Unit, ...]:
    if kernels is None:
        return module.units
    return tuple(unit for unit in module.units if unit.kernel.qualified_name in kernels)


def _groups(units: Iterable[Unit], workloads: tuple[Workload, ...]) -> list[tuple[Unit, ...]]:
    """Units that one job serves, in file order: those that one entry launches with a workload."""
    groups: dict[object, list[Unit]] = {}
    for unit in units:
        shared = heaviest_run(unit, workloads) is not None and unit.entry is not None
        key = unit.entry.qualified_name if shared and unit.entry else unit.kernel.span.start
        groups.setdefault(key, []).append(unit)
    return [tuple(group) for group in groups.values()]
