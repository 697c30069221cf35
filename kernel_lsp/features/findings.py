"""Which findings of a unit are shown, and in what words: several targets side by side."""

from __future__ import annotations

from dataclasses import dataclass

from kernel_lsp.features.state import FileState, UnitState
from search_engine.domain.finding import Finding, Severity

MOST_HINTS = 5
"""Performance findings shown for one kernel, the costliest ones."""

OWN_CODES = frozenset({"KL001", "KL002", "KL003", "KL801", "KL802", "KL803"})
"""Made by the server from the text and the runs, so not taken from facts."""


@dataclass(frozen=True, slots=True)
class Shown:
    """One place with one pattern. ``finding`` is that of the target where it costs most."""

    finding: Finding
    message: str

    @property
    def warning(self) -> bool:
        """Always shown."""
        return self.finding.severity is Severity.WARNING


def findings(state: FileState, unit: UnitState) -> tuple[Shown, ...]:
    """All that is not ignored, the costliest first."""
    groups: dict[tuple[str, int], list[Finding]] = {}
    for facts in unit.facts:
        for finding in facts.findings:
            if finding.code not in OWN_CODES and not is_ignored(state, finding):
                groups.setdefault((finding.code, finding.line), []).append(finding)
    shown = [_merged(group, len(unit.facts)) for group in groups.values()]
    return tuple(sorted(shown, key=lambda s: (-s.finding.cost, s.finding.line, s.finding.code)))


def visible(state: FileState, unit: UnitState) -> tuple[Shown, ...]:
    """What is drawn on lines now: warnings, and the costliest hints if details are shown."""
    found = findings(state, unit)
    hints = [item for item in found if not item.warning]
    shown = hints[:MOST_HINTS] if unit.details else []
    return (*(item for item in found if item.warning), *shown)


def is_ignored(state: FileState, finding: Finding) -> bool:
    """True if a setting or a comment hides it."""
    if {finding.code, finding.name} & set(state.settings.ignore):
        return True
    return any(comment.hides(finding) for comment in state.snapshot.ignored)


def _merged(group: list[Finding], targets: int) -> Shown:
    worst = max(group, key=lambda finding: finding.cost)
    if targets == 1:
        return Shown(worst, _message(worst))
    by_text: dict[str, list[str]] = {}
    for finding in group:
        by_text.setdefault(_message(finding), []).append(finding.target or "")
    parts = [f"{', '.join(dict.fromkeys(names))}: {text}" for text, names in by_text.items()]
    return Shown(worst, "; ".join(parts))


def _message(finding: Finding) -> str:
    said = "assume" in finding.message
    return (
        f"{finding.message} (assumed launch)" if finding.assumed and not said else finding.message
    )
