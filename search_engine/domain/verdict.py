"""The closed union of what can be said about a candidate, and "better than" in one place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from search_engine.domain.facts import Traffic
from search_engine.domain.job import Mismatch


@dataclass(frozen=True, slots=True)
class Speedup:
    """Baseline time over candidate time, interleaved, with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Timing:
    """Paired times of baseline and candidate on one case, in microseconds."""

    case: str
    cold: bool
    baseline_us: float
    candidate_us: float
    speedup: Speedup
    samples: int


@dataclass(frozen=True, slots=True)
class Improved:
    """Correct by the full plan and faster beyond noise. ``verified``: re-measured by the audit."""

    speedup: Speedup
    timings: tuple[Timing, ...]
    verified: bool


@dataclass(frozen=True, slots=True)
class NotImproved:
    """Correct, measured, and not faster, or slower on one of the cases."""

    speedup: Speedup
    reason: str


@dataclass(frozen=True, slots=True)
class Inconclusive:
    """Correct, but the interval does not decide."""

    speedup: Speedup


@dataclass(frozen=True, slots=True)
class Unmeasured:
    """Correct on the CPU interpreter; never timed. The traffic is counted, not predicted."""

    traffic: Traffic | None
    baseline_traffic: Traffic | None


@dataclass(frozen=True, slots=True)
class Incorrect:
    """Broke the correctness rule."""

    mismatch: Mismatch


@dataclass(frozen=True, slots=True)
class CompileFailed:
    """Does not parse, import or compile, or exceeds a limit of the target."""

    message: str


@dataclass(frozen=True, slots=True)
class RuntimeFailed:
    """Raised, faulted, or died."""

    message: str


@dataclass(frozen=True, slots=True)
class TimedOut:
    """Exceeded its deadline and was killed."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Rejected:
    """Broke a policy: an integrity check, a physical floor, forbidden code."""

    reason: str


Verdict: TypeAlias = (
    Improved | NotImproved | Inconclusive | Unmeasured
    | Incorrect | CompileFailed | RuntimeFailed | TimedOut | Rejected
)  # fmt: skip
