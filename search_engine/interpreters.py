"""The interpreters that facts were asked of last, with their workers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from search_engine.archive.facts_cache import FactsStore
from search_engine.domain.ports import Executor
from search_engine.execution.capacity import compile_workers, interpret_workers, memory_bytes
from search_engine.execution.fingerprint import fingerprint
from search_engine.execution.interpreter_choice import find_python
from search_engine.execution.local import LocalExecutor
from search_engine.facts import FactsGatherer

MakeExecutor = Callable[[str, Path, Mapping[str, str]], Executor]
"""``(python, cwd, environment) -> executor``."""

_MOST = 3
"""A workspace of more folders with interpreters of their own starts workers anew."""
_TRUSTED_SECONDS = 60.0
"""How long an interpreter is taken to be as it was: installing a package takes longer."""
_MOST_TARGETS = 4
"""Each has a compile worker of its own, since Triton serves one target a process."""


@dataclass(slots=True)
class _Interpreter:
    executor: Executor
    gatherer: FactsGatherer
    fingerprint: str
    checked: float


class Interpreters:
    """Gatherers by interpreter, working directory and environment.

    ``parallel`` entries are compiled at once, over all of them.
    """

    def __init__(self, store: FactsStore, make_executor: MakeExecutor, parallel: int = 1) -> None:
        self._store = store
        self._slots = asyncio.Semaphore(parallel)
        self._make_executor = make_executor
        self._asking = asyncio.Lock()
        self._known: dict[tuple[str, str, tuple[tuple[str, str], ...]], _Interpreter] = {}

    async def gatherer(
        self, root: Path, setting: str | None, cwd: Path, env: Mapping[str, str]
    ) -> FactsGatherer:
        """The gatherer of the interpreter that ``setting`` or the workspace names."""
        python = str(find_python(root, setting))
        async with self._asking:  # requests that come together share what the first one makes
            return await self._gatherer(python, cwd, env)

    async def _gatherer(self, python: str, cwd: Path, env: Mapping[str, str]) -> FactsGatherer:
        key = (python, str(cwd), tuple(sorted(env.items())))
        known = self._known.pop(key, None)
        now = time.monotonic()
        if known is None or now - known.checked > _TRUSTED_SECONDS:
            known = await self._checked(known, python, cwd, env)
        known.gatherer.begin()
        self._known[key] = known  # last used, last in order
        idle = [k for k, item in self._known.items() if item.gatherer.idle_seconds() > 0]
        while len(self._known) > _MOST and idle and idle[0] != key:
            await self._known.pop(idle.pop(0)).executor.close()
        return known.gatherer

    async def retire(self, idle_seconds: float) -> None:
        """End the workers of interpreters that nothing was asked of for so long."""
        async with self._asking:
            for key, known in tuple(self._known.items()):
                if known.gatherer.idle_seconds() >= idle_seconds:
                    del self._known[key]
                    await known.executor.close()

    async def close(self) -> None:
        """End every worker."""
        while self._known:
            _, known = self._known.popitem()
            await known.executor.close()

    async def _checked(
        self, known: _Interpreter | None, python: str, cwd: Path, env: Mapping[str, str]
    ) -> _Interpreter:
        """The interpreter as it is now; its workers are replaced if it has changed."""
        found = await fingerprint(python, cwd, env)
        if known is not None and known.fingerprint == found:
            known.checked = time.monotonic()
            return known
        if known is not None:
            await known.executor.close()
        executor = self._make_executor(python, cwd, env)
        gatherer = FactsGatherer(executor, self._store, found, self._slots)
        return _Interpreter(executor, gatherer, found, time.monotonic())


def local_executors(scratch: Path) -> MakeExecutor:
    """Executors of worker processes on this machine; ``scratch`` holds their temporary files."""

    def make(python: str, cwd: Path, env: Mapping[str, str]) -> Executor:
        folder = scratch / f"{time.monotonic_ns():x}"
        folder.mkdir()
        return LocalExecutor(
            python, cwd, env, scratch=folder, memory_bytes=memory_bytes(),
            compile_workers=max(_MOST_TARGETS, compile_workers()),
            interpret_workers=interpret_workers(),
        )  # fmt: skip

    return make
