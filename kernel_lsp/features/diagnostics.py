"""Diagnostics: one summary per kernel on its name, and mistakes where they stand."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any

from kernel_lsp.features.blockers import Cause, blocker
from kernel_lsp.features.state import FileState, UnitState
from search_engine.domain.job import RefusalKind
from search_engine.domain.run import Outcome

SOURCE = "kernel-lsp"

LIMIT = 100
"""Most diagnostics of one publish: 1,000 cost 80 ms to serialise."""

NAMES = {
    "KL001": "kernel-summary",
    "KL002": "no-data",
    "KL101": "compile-error",
    "KL801": "workload-syntax",
    "KL802": "workload-mismatch",
    "KL803": "no-workload",
}
"""Stable codes and their names; numbers are never reused."""


class Severity(enum.Enum):
    """As the protocol numbers them."""

    WARNING = 2
    INFORMATION = 3
    HINT = 4


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One diagnostic on the bytes ``[start, end)`` of the snapshot."""

    start: int
    end: int
    severity: Severity
    code: str
    message: str
    data: dict[str, Any] = field(default_factory=dict[str, Any])


def diagnostics(state: FileState) -> tuple[Diagnostic, ...]:
    """All diagnostics of a file, warnings first. ``ignore`` takes codes and names."""
    found = [*_declaration_problems(state)]
    for unit in state.units:
        found += _unit_diagnostics(state, unit)
    hidden = set(state.settings.ignore)
    shown = [d for d in found if not hidden & {d.code, NAMES[d.code]}]
    shown.sort(key=lambda d: d.severity.value)
    return tuple(shown[:LIMIT])


def _declaration_problems(state: FileState) -> list[Diagnostic]:
    return [
        Diagnostic(problem.start, problem.end, Severity.WARNING, problem.code, problem.message)
        for problem in state.snapshot.problems
        if problem.code in NAMES
    ]


def _unit_diagnostics(state: FileState, unit: UnitState) -> list[Diagnostic]:
    found: list[Diagnostic] = []
    failure = _compile_error(state, unit)
    if failure is not None:
        found.append(failure)
    if state.settings.details == "off" and not unit.details:
        return found
    summary = _summary(unit)
    blocked = blocker(state, unit)
    if summary is not None:
        found.append(_on_name(unit, Severity.INFORMATION, "KL001", summary))
    elif blocked is not None and blocked.cause is Cause.NO_WORKLOAD:
        message = f"nothing to run {unit.name} with: {blocked.remedy}"
        found.append(_on_name(unit, Severity.HINT, "KL803", message))
    elif blocked is not None:
        message = f"no data: {blocked.reason}"
        found.append(_on_name(unit, Severity.INFORMATION, "KL002", message))
    elif unit.last is not None or unit.details:
        found.append(_on_name(unit, Severity.INFORMATION, "KL002", _no_data(state, unit)))
    return found


def _no_data(state: FileState, unit: UnitState) -> str:
    if unit.last is not None:
        return f"no data: {unit.last.message}"
    return "no data: not run yet" if state.device else "no data: no GPU, and not run yet"


def _summary(unit: UnitState) -> str | None:
    if unit.best is not None:
        return f"{unit.name}: {unit.best.factor} verified rewrite available ({unit.best.run_id})"
    if unit.untimed:
        count = len(unit.untimed)
        noun = "rewrite" if count == 1 else "rewrites"
        return f"{unit.name}: {count} CPU-checked {noun}, not timed"
    if unit.applied is not None and unit.applied.timed:
        return f"{unit.name}: {unit.applied.factor} rewrite of {unit.applied.run_id} applied"
    last = unit.last
    if last is not None and last.outcome in (Outcome.NOT_IMPROVED, Outcome.INCONCLUSIVE):
        return f"{unit.name}: {last.message}"
    return None


def _compile_error(state: FileState, unit: UnitState) -> Diagnostic | None:
    report = unit.last.report if unit.last else None
    refusal = report.refusal if report else None
    if refusal is None or refusal.kind is not RefusalKind.COMPILE:
        return None
    starts, text_end = state.snapshot.starts, state.snapshot.starts[-1]
    inside = any(s.line <= (refusal.line or -1) <= s.end_line for s in unit.view.unit.spans)
    if refusal.line is None or not inside:
        return _on_name(unit, Severity.WARNING, "KL101", refusal.message)
    start = starts[min(refusal.line, len(starts) - 1)]
    end = start + len(state.snapshot.lines[refusal.line].rstrip().encode())
    return Diagnostic(min(start, text_end), end, Severity.WARNING, "KL101", refusal.message)


def _on_name(unit: UnitState, severity: Severity, code: str, message: str) -> Diagnostic:
    span = unit.view.unit.kernel.name_span
    data = {"kernel": unit.name, "unitHash": unit.view.hash}
    return Diagnostic(span.start, span.end, severity, code, message, data)
