"""One search as the user sees it: states, reasons, budget, spend, and the final report."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import NewType

from search_engine.domain.candidate import Candidate, CandidateId
from search_engine.domain.job import Refusal
from search_engine.domain.target import Environment
from search_engine.domain.verdict import Speedup, Timing, Verdict

RunId = NewType("RunId", str)


class RunState(enum.Enum):
    """Where a run is."""

    QUEUED = "queued"
    BASELINE = "baseline"
    SEARCHING = "searching"
    VERIFYING = "verifying"
    FINISHED = "finished"


class ExitReason(enum.Enum):
    """Why a run ended."""

    BUDGET = "budget"
    """The budget is spent."""
    TARGET = "target"
    """The wanted speedup was reached."""
    ROOFLINE = "roofline"
    """At the limit: at least 90 % of the roofline for this workload."""
    STALLED = "stalled"
    """Nothing left to try, or no gain in the last rounds."""
    CANCELLED = "cancelled"
    FAULTED = "faulted"
    """The machine or the user's own kernel failed; the message says which."""
    STOPPED = "stopped"
    """Cut off by a crash; the run can be resumed."""


class Outcome(enum.Enum):
    """What a finished run found."""

    IMPROVED = "improved"
    NOT_IMPROVED = "not_improved"
    INCONCLUSIVE = "inconclusive"
    UNMEASURED = "unmeasured"
    FAILED = "failed"


class Rung(enum.Enum):
    """The rungs of the ladder, cheapest first."""

    PARSE = "parse"
    COMPILE = "compile"
    ESTIMATE = "estimate"
    SMOKE = "smoke"
    QUICK_TIMING = "quick timing"
    FULL_CORRECTNESS = "full correctness"
    FULL_TIMING = "full timing"
    PROFILE = "profile"
    AUDIT = "audit"


class Effort(enum.Enum):
    """Budget presets."""

    QUICK = "quick"
    NORMAL = "normal"
    THOROUGH = "thorough"


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits in several currencies; whichever is spent first ends the run."""

    wall_seconds: float
    device_seconds: float
    evaluations: int


BUDGETS = {
    Effort.QUICK: Budget(wall_seconds=60.0, device_seconds=20.0, evaluations=80),
    Effort.NORMAL: Budget(wall_seconds=120.0, device_seconds=40.0, evaluations=300),
    Effort.THOROUGH: Budget(wall_seconds=600.0, device_seconds=240.0, evaluations=2000),
}
"""What each effort may spend."""


@dataclass(frozen=True, slots=True)
class Spend:
    """What a run has used, in total and per rung."""

    wall_seconds: float
    device_seconds: float
    evaluations: int
    device_seconds_per_rung: dict[str, float] = field(default_factory=dict[str, float])
    evaluations_per_proposer: dict[str, int] = field(default_factory=dict[str, int])
    full_evaluation_device_seconds: float = 0.0
    """Computed from measured parts: 20 interleaved rounds on every candidate that passed smoke."""
    screening_device_seconds: float = 0.0
    """Measured: the device seconds that timing the same candidates took."""


@dataclass(frozen=True, slots=True)
class CandidateRecord:
    """A candidate with the highest rung it reached and its verdict."""

    candidate: Candidate
    rung: Rung
    verdict: Verdict | None
    quick_ratio: float | None
    """Median baseline time over its time in screening; for ordering, never shown as a claim."""


@dataclass(frozen=True, slots=True)
class Correctness:
    """What was compared, and what was not."""

    method: str
    """``device`` or ``CPU interpreter``."""
    inputs: int
    cases: tuple[str, ...]
    worst_error: float
    """Largest error over its limit; at most 1."""
    independent_reference: bool
    nondeterministic: bool
    outside_domain: tuple[str, ...]
    not_checked: tuple[str, ...]
    without_kernel: tuple[str, ...] = ()
    """Shapes on which the entry launches no kernel; they are not among ``inputs``."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything a person needs to believe an offered rewrite."""

    candidate: CandidateId
    correctness: Correctness
    speedup: Speedup | None
    timings: tuple[Timing, ...]
    noise: float | None
    roofline_fraction: float | None
    environment: Environment
    steps: tuple[str, ...]
    measured_at: str


@dataclass(frozen=True, slots=True)
class RunReport:
    """The result of a run: what ``optimize --json`` prints and the editor reviews."""

    run: RunId
    kernel: str
    path: str
    unit_hash: str
    target: str
    device: str | None
    outcome: Outcome
    exit_reason: ExitReason
    message: str
    baseline_us: float | None
    best_us: float | None
    best: Candidate | None
    evidence: Evidence | None
    spend: Spend
    rungs: dict[str, int]
    """Number of candidates that reached each rung."""
    diff: str
    bound: str | None = None
    environment: Environment | None = None
    refusal: Refusal | None = None
    """Why the user's own kernel cannot be searched as it stands, with its line where known."""
