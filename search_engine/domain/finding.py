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
