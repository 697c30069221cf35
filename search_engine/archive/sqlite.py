"""The archive in one SQLite file (WAL): runs, evaluations and improvements, append-only.

Every insertion is a checkpoint: a killed run resumes from what stands here, with nothing lost but
the evaluation in flight. Evaluations are keyed by the content of their job, so a resumed search
that asks the same questions gets the same answers.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from search_engine.domain.codec import decode, encode
from search_engine.domain.event import ImprovementFound
from search_engine.domain.job import Completed, Job, JobResult
from search_engine.domain.run import RunId, RunReport

SCHEMA_VERSION = 1

_SCHEMA = """
CREATE TABLE IF NOT EXISTS runs (
  id TEXT PRIMARY KEY, created TEXT NOT NULL, key TEXT NOT NULL, unit_hash TEXT NOT NULL,
  kernel TEXT NOT NULL, path TEXT NOT NULL, target TEXT NOT NULL, environment TEXT NOT NULL,
  report TEXT);
CREATE INDEX IF NOT EXISTS runs_by_unit ON runs (unit_hash, created);
CREATE INDEX IF NOT EXISTS runs_by_key ON runs (key, created);
CREATE TABLE IF NOT EXISTS evaluations (
  run TEXT NOT NULL, job TEXT NOT NULL, kind TEXT NOT NULL, created TEXT NOT NULL,
  result TEXT NOT NULL, PRIMARY KEY (run, job));
CREATE TABLE IF NOT EXISTS improvements (
  run TEXT NOT NULL, position INTEGER NOT NULL, created TEXT NOT NULL, verified INTEGER NOT NULL,
  event TEXT NOT NULL, PRIMARY KEY (run, position));
"""


class ArchiveError(Exception):
    """The archive cannot be used; the message names the file and the remedy."""


@dataclass(frozen=True, slots=True)
class RunKey:
    """What makes two runs the same search: a stopped one with this key is resumed."""

    unit_hash: str
    kernel: str
    path: str
    workload: str
    target: str
    environment: str
    effort: str

    @property
    def digest(self) -> str:
        """Content hash; the path is left out, so that a moved file is found again."""
        parts = (self.unit_hash, self.workload, self.target, self.environment, self.effort)
        return hashlib.sha256("\x00".join(parts).encode()).hexdigest()[:24]


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run as the archive has it. ``report`` is None for a run that was cut off."""

    id: RunId
    created: str
    kernel: str
    path: str
    unit_hash: str
    target: str
    environment: str
    report: RunReport | None
    improvements: tuple[ImprovementFound, ...]


class SqliteArchive:
    """One connection to an archive file. Not to be shared between threads."""

    def __init__(self, path: Path) -> None:
        """Open or create the archive. Raises ArchiveError if it is locked, damaged or newer."""
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._connection = self._open()
        except sqlite3.DatabaseError as error:
            raise ArchiveError(f"{path}: {error}; move the file away to start anew") from error

    def start_run(self, key: RunKey) -> tuple[RunId, bool]:
        """A new run, or the newest one with this key that was cut off; True if resumed."""
        row = self._connection.execute(
            "SELECT id, report FROM runs WHERE key = ? ORDER BY created DESC, rowid DESC LIMIT 1",
            (key.digest,),
        ).fetchone()
        if row is not None and row[1] is None:
            return RunId(row[0]), True
        created = _now()
        run = RunId(hashlib.sha256(f"{key.digest}{created}".encode()).hexdigest()[:10])
        with self._connection:
            self._connection.execute(
                "INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL)",
                (
                    run,
                    created,
                    key.digest,
                    key.unit_hash,
                    key.kernel,
                    key.path,
                    key.target,
                    key.environment,
                ),
            )
        return run, False

    def evaluation(self, run: RunId, job: Job) -> JobResult | None:
        """What this run was answered for exactly this job, if it asked before."""
        row = self._connection.execute(
            "SELECT result FROM evaluations WHERE run = ? AND job = ?", (run, job_digest(job))
        ).fetchone()
        return None if row is None else decode(JobResult, json.loads(row[0]))

    def append_evaluation(self, run: RunId, job: Job, result: Completed) -> None:
        """Keep an answer. Crashes and expired deadlines are not kept: they may pass."""
        values = (run, job_digest(job), type(job).__name__, _now(), json.dumps(encode(result)))
        with self._connection:
            self._connection.execute(
                "INSERT OR IGNORE INTO evaluations VALUES (?, ?, ?, ?, ?)", values
            )

    def append_improvement(self, run: RunId, event: ImprovementFound) -> None:
        """Keep a candidate that may be offered, with its evidence."""
        with self._connection:
            self._connection.execute(
                "INSERT INTO improvements SELECT ?, COUNT(*), ?, ?, ? FROM improvements "
                "WHERE run = ?",
                (run, _now(), int(event.verified), json.dumps(encode(event)), run),
            )

    def finish_run(self, run: RunId, report: RunReport) -> None:
        """Close a run with its report."""
        with self._connection:
            self._connection.execute(
                "UPDATE runs SET report = ? WHERE id = ?", (json.dumps(encode(report)), run)
            )

    def runs(self, unit_hash: str) -> tuple[StoredRun, ...]:
        """All runs of a unit, newest first."""
        rows = self._connection.execute(
            "SELECT id, created, kernel, path, target, environment, report FROM runs "
            "WHERE unit_hash = ? ORDER BY created DESC, rowid DESC",
            (unit_hash,),
        ).fetchall()
        return tuple(
            StoredRun(
                RunId(run), created, kernel, path, unit_hash, target, environment,
                None if report is None else decode(RunReport, json.loads(report)),
                self._improvements(RunId(run)),
            )
            for run, created, kernel, path, target, environment, report in rows
        )  # fmt: skip

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _improvements(self, run: RunId) -> tuple[ImprovementFound, ...]:
        rows = self._connection.execute(
            "SELECT event FROM improvements WHERE run = ? ORDER BY position", (run,)
        ).fetchall()
        return tuple(decode(ImprovementFound, json.loads(row[0])) for row in rows)

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=5.0)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version > SCHEMA_VERSION:
            connection.close()
            raise ArchiveError(
                f"{self.path} was written by a newer kernel-lsp (schema {version}); "
                "update, or set kernelLsp.archive.url to another file"
            )
        with connection:
            connection.executescript(_SCHEMA)
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        return connection


def job_digest(job: Job) -> str:
    """Content hash of a job."""
    return hashlib.sha256(json.dumps(encode(job), sort_keys=True).encode()).hexdigest()


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="microseconds")
