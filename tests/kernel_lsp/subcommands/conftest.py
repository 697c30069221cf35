"""A service whose workers answer from a table, for tests of the command line."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "search_engine"))

from fake_executor import FakeExecutor, answer

from kernel_lsp.subcommands import diagnose
from search_engine.archive.facts_cache import MemoryFacts
from search_engine.diagnosis import Diagnosis
from search_engine.domain.job import Job, JobResult
from search_engine.domain.ports import Executor
from search_engine.interpreters import Interpreters


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Job], JobResult]], None]:
    """Choose what workers answer; healthy ones until then."""
    replies: list[Callable[[Job], JobResult]] = [answer]

    def make(python: str, cwd: Path, env: Mapping[str, str]) -> Executor:
        del python, cwd, env
        return FakeExecutor(lambda job: replies[-1](job))

    @contextlib.asynccontextmanager
    async def service() -> AsyncIterator[Any]:
        yield Diagnosis(Interpreters(MemoryFacts(), make))

    monkeypatch.setattr(diagnose, "diagnosis", service)
    return replies.append
