"""Candidates: complete alternatives to the user's unit, named by content."""

from __future__ import annotations

import enum
import hashlib
from dataclasses import dataclass
from typing import NewType

CandidateId = NewType("CandidateId", str)
"""First 12 hex digits of the SHA-256 of the complete text."""


class Numerics(enum.Enum):
    """How a rewrite changes the arithmetic."""

    EXACT = "exact"
    """Every output element is computed by the same operations in the same order."""
    REASSOCIATES = "reassociates"
    """Sums or maxima are combined in another order."""
    LOWERS_PRECISION = "lowers precision"
    """A narrower type or matrix format; only with the user's permission."""


@dataclass(frozen=True, slots=True)
class TextEdit:
    """Replace the bytes ``[start, end)`` of the UTF-8 text by ``new_text``."""

    start: int
    end: int
    new_text: str


@dataclass(frozen=True, slots=True)
class Assignment:
    """One meta-parameter and its value, as written in the source."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Rewrite:
    """What a rule offers for a unit: edits, and the configurations worth trying first."""

    rule: str
    title: str
    edits: tuple[TextEdit, ...]
    numerics: Numerics
    configurations: tuple[tuple[Assignment, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Candidate:
    """A complete text of the user's file in which only the unit differs.

    ``structure`` is the id of the candidate that introduced the present structure; candidates
    that differ by configuration only share it.
    """

    id: CandidateId
    text: str
    parent: CandidateId | None
    structure: CandidateId
    proposer: str
    steps: tuple[str, ...]
    """Titles of the rewrites from the baseline to here, oldest first."""
    rules: tuple[str, ...]
    configuration: tuple[Assignment, ...]
    numerics: Numerics
    hints: tuple[tuple[Assignment, ...], ...] = ()
    """Configurations of this structure that its rule calls worth trying first."""

    @property
    def title(self) -> str:
        """One line for people."""
        settings = ", ".join(f"{item.name}={item.value}" for item in self.configuration)
        parts = [*self.steps, *([settings] if settings else [])]
        return "; ".join(parts) or "the kernel as found"


def python_text(text: str) -> str:
    """The text for Python's parser, which refuses a byte order mark in a str.

    Texts keep their mark everywhere else, so that what is written has it too.
    """
    return text.removeprefix("\ufeff")


def candidate_id(text: str) -> CandidateId:
    """Content hash of a complete text."""
    return CandidateId(hashlib.sha256(text.encode()).hexdigest()[:12])


def apply_edits(text: str, edits: tuple[TextEdit, ...]) -> str:
    """Apply byte edits that do not overlap. Raises ValueError if two edits overlap."""
    data = text.encode()
    position = len(data)
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end), reverse=True):
        if edit.end > position:
            raise ValueError(f"edits overlap at byte {edit.end}")
        data = data[: edit.start] + edit.new_text.encode() + data[edit.end :]
        position = edit.start
    return data.decode()
