"""Code actions of findings: try the rewrite that answers one, hide it, see the machine code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kernel_lsp.features.action import Action, Command, start_command, target_of
from kernel_lsp.features.blockers import BEFORE_COMPILING, blocker
from kernel_lsp.features.findings import Shown, findings, visible
from kernel_lsp.features.kinds import LISTING, QUICK_FIX, REWRITE
from kernel_lsp.features.state import FileState, UnitState
from search_engine.domain.finding import Finding

MOST_TARGETS = 3
"""Targets for which machine code is offered; a longer list would bury the rest."""


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines that an editor asks about, both inclusive."""

    first: int
    last: int

    def touch(self, first: int, last: int) -> bool:
        """True if they overlap the lines ``[first, last]``."""
        return first <= self.last and self.first <= last


def finding_actions(state: FileState, unit: UnitState, lines: Lines) -> list[Action]:
    """Actions of the findings that are drawn on the lines."""
    here = [s for s in visible(state, unit) if lines.touch(s.finding.line, s.finding.end_line)]
    tries = _try_actions(state, unit, here)
    return [*tries, *(_ignore_action(state, unit, shown) for shown in here)]


def place_of(state: FileState, unit: UnitState, code: str, index: int) -> Finding | None:
    """The finding that an ignore action was made for; None if it is gone."""
    found = [shown.finding for shown in findings(state, unit) if shown.finding.code == code]
    found.sort(key=lambda finding: finding.line)
    return found[index] if 0 <= index < len(found) else None


def listing_actions(state: FileState, unit: UnitState, lines: Lines) -> list[Action]:
    """``Show machine code for this line``, for each target."""
    blocked = blocker(state, unit)
    if blocked is not None and blocked.cause in BEFORE_COMPILING:
        return []
    known = [facts.target for facts in unit.facts if facts.summary is not None]
    return [_listing_action(state, unit, lines.first, t) for t in known[:MOST_TARGETS]]


def _try_actions(state: FileState, unit: UnitState, here: list[Shown]) -> list[Action]:
    if unit.run is not None or blocker(state, unit) is not None:
        return []
    codes: dict[str, list[str]] = {}
    for shown in here:
        if shown.finding.rule is not None:
            codes.setdefault(shown.finding.rule, []).append(shown.finding.code)
    return [_try_action(state, unit, rule, tuple(found)) for rule, found in codes.items()]


def _try_action(state: FileState, unit: UnitState, rule: str, codes: tuple[str, ...]) -> Action:
    promise = "verified before it is offered" if state.device else "checked on the CPU, not timed"
    title = f"Try {rule} for {unit.name} ({promise})"
    return Action(title, REWRITE, start_command(state, unit, title, (rule,)), codes=codes)


def _ignore_action(state: FileState, unit: UnitState, shown: Shown) -> Action:
    found = shown.finding
    data: dict[str, Any] = {
        "action": "ignore", **target_of(state, unit), "unitHash": unit.view.hash,
        "code": found.code, "index": _alike(state, unit, found.code).index(found.line),
    }  # fmt: skip
    return Action(f"Ignore {found.name} here", QUICK_FIX, data=data, codes=(found.code,))


def _alike(state: FileState, unit: UnitState, code: str) -> list[int]:
    """Lines of the findings with a code: their order outlives edits elsewhere in the file."""
    found = (shown.finding for shown in findings(state, unit))
    return sorted(finding.line for finding in found if finding.code == code)


def _listing_action(state: FileState, unit: UnitState, line: int, target: str) -> Action:
    title = f"Show machine code for this line ({target})"
    argument = {**target_of(state, unit), "line": line, "target": target}
    return Action(title, LISTING, Command(title, "kernelLsp.listing", argument))
