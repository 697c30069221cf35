"""A finding: one pattern at one place, with its cause and cost."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field


class Severity(enum.Enum):
    """How loudly a finding is shown."""

    WARNING = "warning"
    """Correctness and compile findings; always shown."""
    INFORMATION = "information"
    HINT = "hint"
    """Performance findings; shown when details are asked for."""


@dataclass(frozen=True, slots=True)
class Related:
    """Another place that a finding is about: launch site, block constant, the load it reads."""

    line: int
    start: int
    end: int
    message: str


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found, where, and the numbers behind it. Lines are 0-based, bytes in the text."""

    path: str
    line: int
    end_line: int
    start: int
    end: int
    kernel: str | None
    code: str
    name: str
    severity: Severity
    message: str
    target: str | None = None
    facts: dict[str, float | int | str] = field(default_factory=dict[str, float | int | str])
    cost: float = 0.0
    """Estimated share of the kernel's time that is at stake, 0 to 1: orders findings and hides
    what cannot matter on the target. Never shown as a number."""
    related: tuple[Related, ...] = ()
    rule: str | None = None
    """Name of the rewrite rule that answers it, if one does."""
    assumed: bool = False
    """True if it rests on a launch that was inferred from the text."""
