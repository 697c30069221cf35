"""Executors whose workers start in milliseconds, because they import nothing ahead."""

import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from search_engine.execution.local import LocalExecutor


@pytest_asyncio.fixture
async def make_executor(tmp_path: Path) -> AsyncIterator[Callable[..., LocalExecutor]]:
    made: list[LocalExecutor] = []
    (tmp_path / "workspace").mkdir()

    def make(python: str = sys.executable, **options) -> LocalExecutor:
        executor = LocalExecutor(
            python,
            tmp_path / "workspace",
            options.pop("env", None),
            scratch=tmp_path / "scratch",
            cache_folder=tmp_path / "cache",
            imports=options.pop("imports", ()),
            nice=0,
            **options,
        )
        made.append(executor)
        return executor

    yield make
    for executor in made:
        await executor.close()


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return tmp_path / "workspace"
