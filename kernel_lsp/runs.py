"""One run as the user sees it: state, counts, the progress line, and how it ended."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from search_engine.domain.event import (
    BaselineMeasured,
    CandidateEvaluated,
    Finished,
    ImprovementFound,
    Progress,
    SearchEvent,
    StateChanged,
)
from search_engine.domain.run import ExitReason, Outcome, RunReport, RunState
from search_engine.domain.verdict import Speedup

LINE_WIDTH = 60
"""Longest progress message; status bars cut longer ones."""

ROWS_KEPT = 60
"""Candidates listed in an update; the archive has them all."""


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What a run was started for. ``text`` is the whole file at the start."""

    uri: str
    path: str
    name: str
    unit_hash: str
    text: str
    root: str
    effort: str
    budget_seconds: float
    device: str
    host_request: dict[str, Any]


@dataclass(frozen=True, slots=True)
class CandidateRow:
    """One candidate as listed in an update."""

    id: str
    title: str
    rung: str
    verdict: str | None


@dataclass(slots=True)
class Run:
    """A run and what its events have told so far. Owned by ``Jobs``; others only read it."""

    id: str
    request: RunRequest
    created: float = field(default_factory=time.monotonic)
    started: float | None = None
    state: RunState = RunState.QUEUED
    detail: str = ""
    queue_ahead: int = 0
    baseline: BaselineMeasured | None = None
    best: Speedup | None = None
    tried: int = 0
    rejected: int = 0
    verified: int = 0
    best_verified: Speedup | None = None
    rows: dict[str, CandidateRow] = field(default_factory=dict[str, CandidateRow])
    report: RunReport | None = None
    exit_reason: ExitReason | None = None
    outcome: Outcome | None = None
    message: str = ""
    """How it ended, for people."""

    @property
    def token(self) -> str:
        """Progress token; text, since one client rejects numbers."""
        return f"kernelLsp/{self.id}"

    @property
    def ended(self) -> bool:
        """True once the user has been told the end; nothing is published after it."""
        return self.exit_reason is not None

    @property
    def elapsed(self) -> float:
        """Seconds since the search host was started."""
        return time.monotonic() - self.started if self.started is not None else 0.0

    @property
    def percentage(self) -> int:
        """Elapsed time over the budget; honest, and it never falls."""
        return min(99, int(100 * self.elapsed / max(self.request.budget_seconds, 0.001)))

    def observe(self, event: SearchEvent) -> None:
        """Take in one event."""
        match event:
            case StateChanged():
                if event.state is not RunState.FINISHED:
                    self.state, self.detail = event.state, event.detail
            case BaselineMeasured():
                self.baseline = event
            case CandidateEvaluated():
                self._note_row(event)
            case Progress():
                self.tried, self.rejected = event.tried, event.rejected
                self.best = event.best or self.best
            case ImprovementFound():
                self._note_improvement(event)
            case Finished():
                self.report = event.report

    def line(self, suffix: str = "") -> str:
        """The progress message, at most ``LINE_WIDTH`` signs, most important first."""
        if self.state is RunState.QUEUED and self.started is None:
            ahead = f", {self.queue_ahead} ahead" if self.queue_ahead else ""
            return f"waiting for the device{ahead}"[:LINE_WIDTH]
        if self.state in (RunState.QUEUED, RunState.BASELINE):
            return (self.detail or "measuring baseline")[:LINE_WIDTH]
        gain = f"best {self.best.value:.2f}x" if self.best else "no gain yet"
        left = max(0, round(self.request.budget_seconds - self.elapsed))
        counts = f"{self.tried} tried, {self.rejected} rejected"
        parts = [gain, counts, f"{left} s left"]
        if suffix:
            parts = [gain, f"{left} s left"]
            return f"{' · '.join(parts)} {suffix}"[:LINE_WIDTH]
        return " · ".join(parts)[:LINE_WIDTH]

    def update(self) -> dict[str, Any]:
        """The custom ``kernelLsp/runUpdate`` notification."""
        return {
            "runId": self.id,
            "uri": self.request.uri,
            "kernel": self.request.name,
            "state": self.state.value,
            "elapsed": round(self.elapsed, 1),
            "budget": self.request.budget_seconds,
            "queueAhead": self.queue_ahead,
            "message": self.message or self.line(),
            "baseline": self._baseline(),
            "best": _speedup(self.best_verified),
            "exitReason": self.exit_reason.value if self.exit_reason else None,
            "outcome": self.outcome.value if self.outcome else None,
            "candidates": [
                {"id": row.id, "title": row.title, "rung": row.rung, "verdict": row.verdict}
                for row in self.rows.values()
            ],
        }

    def finish(self, reason: ExitReason, outcome: Outcome, message: str) -> None:
        """Record the end; a second end is a mistake of ours."""
        assert not self.ended, f"{self.id} has already ended"
        self.state, self.exit_reason = RunState.FINISHED, reason
        self.outcome, self.message = outcome, message

    def _baseline(self) -> dict[str, float] | None:
        if self.baseline is None:
            return None
        measured = self.baseline
        return {
            "p50us": measured.median_us,
            "ciLow": measured.low_us,
            "ciHigh": measured.high_us,
        }

    def _note_row(self, event: CandidateEvaluated) -> None:
        verdict = type(event.verdict).__name__ if event.verdict else None
        row = CandidateRow(event.candidate, event.title, event.rung.value, verdict)
        self.rows[event.candidate] = row
        while len(self.rows) > ROWS_KEPT:
            del self.rows[next(iter(self.rows))]

    def _note_improvement(self, event: ImprovementFound) -> None:
        speedup = event.evidence.speedup
        if speedup is not None and (self.best is None or speedup.value > self.best.value):
            self.best = speedup
        if not event.verified and speedup is not None:
            return
        self.verified += 1
        best = self.best_verified
        if speedup is not None and (best is None or speedup.value > best.value):
            self.best_verified = speedup


def kept(run: Run) -> str:
    """``2 verified candidates kept (1.21x)``; what a cancelled run leaves behind."""
    if not run.verified:
        return "no verified candidate yet"
    noun = "candidate" if run.verified == 1 else "candidates"
    best = f" ({run.best_verified.value:.2f}x)" if run.best_verified else ""
    return f"{found(run)} {noun} kept{best}"


def found(run: Run) -> str:
    """``2 verified``; what was checked on the CPU interpreter alone is never called so."""
    only_checked = run.verified and run.best_verified is None
    return f"{run.verified} {'CPU-checked' if only_checked else 'verified'}"


def closing_message(run: Run, report: RunReport) -> str:
    """How a finished run reads to people."""
    minutes = f"{run.request.budget_seconds / 60:.3g} min"
    match report.outcome:
        case Outcome.IMPROVED if report.evidence and report.evidence.speedup:
            return f"{report.evidence.speedup.value:.2f}x verified"
        case Outcome.UNMEASURED:
            count = f"{run.verified} CPU-checked" if run.verified else "no CPU-checked"
            return f"{count} rewrite{'' if run.verified == 1 else 's'}, not timed: no GPU here"
        case Outcome.NOT_IMPROVED | Outcome.INCONCLUSIVE:
            best = f" (best {run.best.value:.2f}x within noise)" if run.best else ""
            bound = f". Bound: {report.bound}" if report.bound else ""
            return f"No verified gain in {minutes}{best}{bound}"
        case _:
            return report.message or report.outcome.value


def _speedup(value: Speedup | None) -> dict[str, float] | None:
    return None if value is None else {"speedup": value.value, "low": value.low, "high": value.high}
