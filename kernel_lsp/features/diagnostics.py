"""Diagnostics: one summary per kernel on its name, mistakes and findings where they stand."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any

from kernel_lsp.features.blockers import BEFORE_COMPILING, Cause, blocker
from kernel_lsp.features.findings import Shown, is_ignored, visible
from kernel_lsp.features.state import FileState, UnitState
from kernel_lsp.features.summary import summary
from search_engine.domain import finding
from search_engine.domain.finding import Finding, Related
from search_engine.domain.job import RefusalKind

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
"""Codes that the server makes itself; those of findings come with them."""


class Severity(enum.Enum):
    """As the protocol numbers them."""

    WARNING = 2
    INFORMATION = 3
    HINT = 4


_SEVERITY = {
    Severity.WARNING: finding.Severity.WARNING,
    Severity.INFORMATION: finding.Severity.INFORMATION,
    Severity.HINT: finding.Severity.HINT,
}


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One diagnostic on the bytes ``[start, end)`` of the snapshot."""

    start: int
    end: int
    severity: Severity
    code: str
    message: str
    data: dict[str, Any] = field(default_factory=dict[str, Any])
    name: str = ""
    related: tuple[Related, ...] = ()
    """Other places that it is about, in the same snapshot."""


def diagnostics(state: FileState) -> tuple[Diagnostic, ...]:
    """All diagnostics of a file, warnings first. ``ignore`` takes codes and names."""
    found = [*_declaration_problems(state)]
    for unit in state.units:
        found += _unit_diagnostics(state, unit)
    shown = _once([d for d in found if not _is_hidden(state, d)])
    shown.sort(key=lambda d: d.severity.value)
    return tuple(shown[:LIMIT])


def _once(found: list[Diagnostic]) -> list[Diagnostic]:
    """One sentence on missing data is enough, however many kernels it is true of."""
    first: dict[str, Diagnostic] = {}
    for item in found:
        if item.code == "KL002":
            first.setdefault(item.message, item)
    return [item for item in found if item.code != "KL002" or first[item.message] is item]


def _is_hidden(state: FileState, shown: Diagnostic) -> bool:
    """Ignored; those that come from a finding have been asked about already."""
    if shown.code not in NAMES:
        return False
    line, kernel = state.snapshot.line_of(shown.start), shown.data.get("kernel")
    return is_ignored(
        state,
        Finding(
            state.snapshot.path, line, line, shown.start, shown.end, kernel, shown.code,
            NAMES[shown.code], _SEVERITY[shown.severity], shown.message,
        ),
    )  # fmt: skip


def _declaration_problems(state: FileState) -> list[Diagnostic]:
    return [
        Diagnostic(
            problem.start, problem.end, Severity.WARNING, problem.code, problem.message,
            name=NAMES[problem.code],
        )
        for problem in state.snapshot.problems
        if problem.code in NAMES
    ]  # fmt: skip


def _unit_diagnostics(state: FileState, unit: UnitState) -> list[Diagnostic]:
    found = [_of_finding(unit, shown) for shown in visible(state, unit)]
    failure = _compile_error(state, unit)
    if failure is not None and not any(d.code == failure.code for d in found):
        found.append(failure)
    if state.settings.details == "off" and not unit.details:
        return [d for d in found if d.severity is Severity.WARNING]
    text = summary(state, unit)
    blocked = blocker(state, unit)
    if text is not None:
        found.append(_on_name(unit, Severity.INFORMATION, "KL001", text))
    if blocked is not None and blocked.cause is Cause.NO_WORKLOAD:
        message = f"nothing to run {unit.name} with: {blocked.remedy}"
        found.append(_on_name(unit, Severity.HINT, "KL803", message))
    elif text is None:
        reason = no_data(state, unit)
        if reason is not None:
            found.append(_on_name(unit, Severity.INFORMATION, "KL002", f"no data: {reason}"))
    return found


def no_data(state: FileState, unit: UnitState) -> str | None:
    """Why nothing can be said of a kernel; None while that is no news."""
    blocked = blocker(state, unit)
    if blocked is not None and blocked.cause in BEFORE_COMPILING:
        return blocked.reason
    if any(facts.compile_failed for facts in unit.facts):
        return "it does not compile, see the warning" if unit.details else None
    refusals = dict.fromkeys(f.refusal for f in unit.facts if f.refusal is not None)
    if refusals:
        return "; ".join(text for text in refusals if text)
    if blocked is not None:
        return blocked.reason
    if unit.last is not None:
        return unit.last.message
    if unit.facts:
        notes = [note for facts in unit.facts for note in facts.notes]
        return notes[0] if notes else None
    return _nothing_yet(state, unit) if unit.details else None


def _nothing_yet(state: FileState, unit: UnitState) -> str | None:
    """Why details that are wanted are not there; None where they come by themselves."""
    if state.snapshot.module.problems:
        line = state.snapshot.module.problems[0].span.line + 1
        return f"the file is not compiled before line {line} parses"
    if state.settings.details == "perLine" and state.settings.compile == "background":
        return None
    if unit.computing:
        return "the compiler is being asked"
    if state.settings.compile == "background":
        return None
    return f"not compiled: kernelLsp.compile is {state.settings.compile}"


def _of_finding(unit: UnitState, shown: Shown) -> Diagnostic:
    found = shown.finding
    data: dict[str, Any] = {
        "code": found.code, "name": found.name, "kernel": unit.name, "unitHash": unit.view.hash,
    }  # fmt: skip
    if found.rule is not None:
        data["rule"] = found.rule
    severity = Severity.WARNING if shown.warning else Severity.HINT
    return Diagnostic(
        found.start, found.end, severity, found.code, shown.message, data, found.name, found.related
    )


def _compile_error(state: FileState, unit: UnitState) -> Diagnostic | None:
    """What a run met; background compiles find the same, on this form or another target."""
    report = unit.last.report if unit.last else None
    refusal = report.refusal if report else None
    if refusal is None or refusal.kind is not RefusalKind.COMPILE:
        return None
    snapshot, line = state.snapshot, refusal.line
    inside = line is not None and any(s.line <= line <= s.end_line for s in unit.view.unit.spans)
    if line is None or not inside or line >= len(snapshot.lines):
        return _on_name(unit, Severity.WARNING, "KL101", refusal.message)
    start, end = snapshot.code_of(line)
    return Diagnostic(
        start, end, Severity.WARNING, "KL101", refusal.message, name=NAMES["KL101"]
    )  # fmt: skip


def _on_name(unit: UnitState, severity: Severity, code: str, message: str) -> Diagnostic:
    span = unit.view.unit.kernel.name_span
    data = {"code": code, "kernel": unit.name, "unitHash": unit.view.hash}
    return Diagnostic(span.start, span.end, severity, code, message, data, NAMES[code])
