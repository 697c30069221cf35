"""The archive keeps what was verified through crashes, and says what is wrong with a bad file."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from search_engine.archive.executor import ArchivedExecutor
from search_engine.archive.sqlite import ArchiveError, RunKey, SqliteArchive
from search_engine.domain.candidate import Candidate, Numerics, candidate_id
from search_engine.domain.event import ImprovementFound
from search_engine.domain.job import (
    Completed,
    Crashed,
    HangJob,
    Job,
    JobResult,
    Lane,
    ProbeJob,
    Refusal,
    RefusalKind,
)
from search_engine.domain.run import Correctness, Evidence
from search_engine.domain.target import Environment
from search_engine.domain.verdict import Speedup
from search_engine.report import stopped_report

KEY = RunKey("hash", "k", "/p/k.py", "x=f32[4]", "sm_90", "no device", "quick")
ENVIRONMENT = Environment(None, None, "3.11", "2.13", "3.6", "sm_90")


def improvement(verified: bool) -> ImprovementFound:
    text = "def k(): ...\n"
    identity = candidate_id(text)
    candidate = Candidate(
        identity, text, None, identity, "rules", ("a step",), ("r",), (), Numerics.EXACT
    )
    checked = Correctness("device", 3, ("x=f32[4]",), 0.5, True, False, (), ())
    evidence = Evidence(
        identity, checked, Speedup(1.5, 1.4, 1.6), (), 0.01, 0.8, ENVIRONMENT, ("a step",), "now"
    )
    return ImprovementFound(candidate, evidence, verified, 1.0)


class CountingExecutor:
    def __init__(self, result: JobResult) -> None:
        self.result = result
        self.calls = 0

    async def run(self, job: Job, lane: Lane, deadline_seconds: float) -> JobResult:
        self.calls += 1
        return self.result

    async def close(self) -> None:
        pass


def test_run_that_was_cut_off_is_resumed(tmp_path: Path) -> None:
    archive = SqliteArchive(tmp_path / "a.sqlite")
    first, resumed = archive.start_run(KEY)
    assert not resumed
    archive.append_improvement(first, improvement(verified=True))
    archive.close()  # as a killed process leaves it: no report

    again = SqliteArchive(tmp_path / "a.sqlite")
    second, resumed = again.start_run(KEY)
    assert (second, resumed) == (first, True)
    report = stopped_report(again.runs("hash")[0])
    assert report.exit_reason.value == "stopped"
    assert report.outcome.value == "improved"
    assert report.best == improvement(verified=True).candidate


def test_unverified_improvement_of_a_cut_off_run_is_not_called_improved(tmp_path: Path) -> None:
    archive = SqliteArchive(tmp_path / "a.sqlite")
    run, _ = archive.start_run(KEY)
    archive.append_improvement(run, improvement(verified=False))
    report = stopped_report(archive.runs("hash")[0])
    assert report.outcome.value == "not_improved"
    assert report.best is None


def test_finished_run_is_not_resumed(tmp_path: Path) -> None:
    archive = SqliteArchive(tmp_path / "a.sqlite")
    run, _ = archive.start_run(KEY)
    archive.finish_run(run, stopped_report(archive.runs("hash")[0]))
    other, resumed = archive.start_run(KEY)
    assert not resumed
    assert other != run
    assert archive.runs("hash")[1].report is not None


async def test_resumed_run_asks_nothing_twice(tmp_path: Path) -> None:
    archive = SqliteArchive(tmp_path / "a.sqlite")
    run, _ = archive.start_run(KEY)
    inner = CountingExecutor(Completed(Refusal(RefusalKind.COMPILE, "no"), 0.5))
    executor = ArchivedExecutor(inner, archive, run)
    first = await executor.run(HangJob("sleep", 1.0), Lane.DEVICE, 5.0)
    second = await executor.run(HangJob("sleep", 1.0), Lane.DEVICE, 5.0)
    assert first == second
    assert (inner.calls, executor.replayed) == (1, 1)
    await executor.run(HangJob("sleep", 2.0), Lane.DEVICE, 5.0)
    assert inner.calls == 2


async def test_crash_is_asked_again(tmp_path: Path) -> None:
    archive = SqliteArchive(tmp_path / "a.sqlite")
    run, _ = archive.start_run(KEY)
    inner = CountingExecutor(Crashed("signal 9", 0.1))
    executor = ArchivedExecutor(inner, archive, run)
    for _ in range(2):
        await executor.run(HangJob("sleep", 1.0), Lane.DEVICE, 5.0)
    assert inner.calls == 2


async def test_probe_is_never_served_from_the_archive(tmp_path: Path) -> None:
    archive = SqliteArchive(tmp_path / "a.sqlite")
    run, _ = archive.start_run(KEY)
    inner = CountingExecutor(Completed(Refusal(RefusalKind.ENVIRONMENT, "no"), 0.1))
    executor = ArchivedExecutor(inner, archive, run)
    for _ in range(2):
        await executor.run(ProbeJob(), Lane.DEVICE, 5.0)
    assert inner.calls == 2


def test_damaged_file_is_named_with_the_remedy(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    path.write_bytes(b"this is not a database" * 100)
    with pytest.raises(ArchiveError, match=r"a\.sqlite.*move the file away"):
        SqliteArchive(path)


def test_newer_schema_is_refused_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.commit()
    connection.close()
    with pytest.raises(ArchiveError, match="newer kernel-lsp"):
        SqliteArchive(path)
    assert sqlite3.connect(path).execute("PRAGMA user_version").fetchone() == (99,)


def test_moved_file_is_found_by_its_unit(tmp_path: Path) -> None:
    archive = SqliteArchive(tmp_path / "a.sqlite")
    first, _ = archive.start_run(KEY)
    moved = RunKey("hash", "k", "/other/k.py", "x=f32[4]", "sm_90", "no device", "quick")
    assert archive.start_run(moved) == (first, True)
