"""What a rung is: a question about candidates, asked through jobs, answered by outcomes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeAlias

from search_engine.domain.candidate import Candidate, CandidateId
from search_engine.domain.facts import CompileFacts
from search_engine.domain.job import (
    BaselineReply,
    CheckReply,
    Completed,
    Crashed,
    Expired,
    Job,
    JobResult,
    Lane,
    Refusal,
    RefusalKind,
    Reply,
    Source,
)
from search_engine.domain.kernel import Module, Unit
from search_engine.domain.run import Rung
from search_engine.domain.target import Target
from search_engine.domain.verdict import (
    CompileFailed,
    Rejected,
    RuntimeFailed,
    Speedup,
    TimedOut,
    Timing,
    Verdict,
)
from search_engine.domain.workload import Workload
from search_engine.source import make_source

Submit: TypeAlias = Callable[[Job, Lane, float], Awaitable[JobResult]]
"""Runs one job in a lane with a deadline in seconds; the ladder charges the budget."""


@dataclass(frozen=True, slots=True)
class Task:
    """What every rung of one run needs to know."""

    path: Path
    module: Module
    unit: Unit
    baseline: Candidate
    workload: Workload
    target: Target
    seed: int
    measured: bool
    """A device is there; without one the interpreter answers for correctness."""
    baseline_reply: BaselineReply | None = None
    facts: Mapping[CandidateId, CompileFacts] = field(
        default_factory=dict[CandidateId, CompileFacts]
    )
    """Compile facts of every candidate so far, the baseline included; kept by the ladder."""

    def source(self, candidate: Candidate) -> Source:
        """The candidate as a worker loads it."""
        return make_source(candidate.id, self.path, candidate.text, self.workload.entry)


@dataclass(frozen=True, slots=True)
class Screened:
    """Samples of one candidate beside the anchor's, in round order; microseconds."""

    anchor_us: tuple[float, ...]
    candidate_us: tuple[float, ...]
    device_seconds_per_round: float


@dataclass(frozen=True, slots=True)
class Proof:
    """Full or audited timing on every case; ``speedup`` is the weighted geometric mean."""

    speedup: Speedup
    timings: tuple[Timing, ...]
    check: CheckReply | None = None


Finding: TypeAlias = CompileFacts | CheckReply | Screened | Proof | None


@dataclass(frozen=True, slots=True)
class Passed:
    """The candidate goes on; ``finding`` is what the rung learned."""

    finding: Finding


@dataclass(frozen=True, slots=True)
class Failed:
    """The candidate stops here."""

    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Pruned:
    """Not evaluated further; not a failure."""

    reason: str


@dataclass(frozen=True, slots=True)
class Fault:
    """The machine failed; never held against the candidate."""

    message: str


RungOutcome: TypeAlias = Passed | Failed | Pruned | Fault


class RungStep(Protocol):
    """One rung of the ladder."""

    rung: Rung

    async def run(
        self, task: Task, candidates: tuple[Candidate, ...], rounds: int, submit: Submit
    ) -> tuple[RungOutcome, ...]:
        """One outcome for each candidate, in order. ``rounds`` only matters to timing rungs."""
        ...


def failed_result(result: JobResult) -> RungOutcome | None:
    """The outcome if a job did not bring the wanted reply, else None."""
    match result:
        case Expired(deadline_seconds=seconds):
            return Failed(TimedOut(seconds))
        case Crashed(detail=detail):
            return Failed(RuntimeFailed(f"the worker died: {last_line(detail)}"))
        case Completed(reply=Refusal() as refusal):
            return refused(refusal)
        case Completed():
            return None


def refused(refusal: Refusal) -> RungOutcome:
    """What a worker's refusal means for the candidate."""
    match refusal.kind:
        case RefusalKind.COMPILE:
            return Failed(CompileFailed(refusal.message))
        case RefusalKind.RUNTIME:
            return Failed(RuntimeFailed(refusal.message))
        case RefusalKind.UNSUPPORTED:
            return Failed(Rejected(f"cannot tell: {refusal.message}"))
        case RefusalKind.WORKLOAD | RefusalKind.REFERENCE:
            return Failed(Rejected(refusal.message))
        case RefusalKind.ENVIRONMENT:
            return Fault(refusal.message)


def unexpected(reply: Reply) -> Fault:
    """A worker answered with the wrong kind of reply."""
    return Fault(f"the worker answered with {type(reply).__name__}")


def last_line(text: str) -> str:
    """The last line of a worker's log that says something."""
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[-1].strip() if lines else "no message"
