"""What a run tells its listeners, in order. Each ends in exactly one ``Finished``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from search_engine.domain.candidate import Candidate
from search_engine.domain.run import Evidence, Rung, RunReport, RunState
from search_engine.domain.verdict import Speedup, Verdict


@dataclass(frozen=True, slots=True)
class StateChanged:
    """The run entered a state; ``detail`` is a sentence for people."""

    state: RunState
    detail: str
    elapsed_seconds: float


@dataclass(frozen=True, slots=True)
class BaselineMeasured:
    """Only with a device."""

    median_us: float
    low_us: float
    high_us: float
    noise: float
    device: str
    elapsed_seconds: float


@dataclass(frozen=True, slots=True)
class CandidateEvaluated:
    """A candidate left a rung; ``verdict`` is None while it goes on."""

    candidate: str
    title: str
    rung: Rung
    verdict: Verdict | None
    elapsed_seconds: float


@dataclass(frozen=True, slots=True)
class Progress:
    """Counts for a progress line. ``best`` is a measured, not yet verified ratio or None."""

    tried: int
    rejected: int
    best: Speedup | None
    elapsed_seconds: float
    budget_seconds: float


@dataclass(frozen=True, slots=True)
class ImprovementFound:
    """A candidate that may be offered. ``verified`` is False until the audit has re-measured it.

    Without a device the evidence carries no speedup.
    """

    candidate: Candidate
    evidence: Evidence
    verified: bool
    elapsed_seconds: float


@dataclass(frozen=True, slots=True)
class Finished:
    """The last event of a run."""

    report: RunReport


SearchEvent: TypeAlias = (
    StateChanged | BaselineMeasured | CandidateEvaluated | Progress | ImprovementFound | Finished
)
