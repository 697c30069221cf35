"""Why a kernel cannot be optimized right now, and what helps."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from kernel_lsp.features.state import FileState, UnitState, start_title
from search_engine.domain.job import RefusalKind
from search_engine.domain.kernel import Kernel


class Cause(enum.Enum):
    """The kinds of reason, most basic first."""

    NOT_ON_DISK = "not on disk"
    SYNTAX = "syntax"
    UNTRUSTED = "untrusted"
    HELPER = "helper"
    NO_ENTRY = "no entry"
    MALFORMED_WORKLOAD = "malformed workload"
    NO_WORKLOAD = "no workload"
    UNSUITABLE = "unsuitable"
    DOES_NOT_COMPILE = "does not compile"


BEFORE_COMPILING = frozenset({Cause.NOT_ON_DISK, Cause.SYNTAX, Cause.UNTRUSTED})
"""Causes that keep a kernel from being compiled as well."""


@dataclass(frozen=True, slots=True)
class Blocker:
    """A reason (short, no final stop) and the remedy (a sentence)."""

    cause: Cause
    reason: str
    remedy: str


def blocker(state: FileState, unit: UnitState) -> Blocker | None:
    """The first reason that stands in the way of a run; None if it can start."""
    view = unit.view
    if not state.on_disk:
        return Blocker(Cause.NOT_ON_DISK, "the file is not saved", "Save it to a folder first.")
    if view.syntax is not None:
        message = f"syntax error: {view.syntax.message}"
        return Blocker(Cause.SYNTAX, message, f"Mend line {view.syntax.span.line + 1}.")
    if not state.trusted:
        remedy = (
            'Optimizing runs code of this workspace. Use "Trust this workspace" if you trust it.'
        )
        return Blocker(Cause.UNTRUSTED, "not trusted", remedy)
    return (
        _workload_blocker(unit) or _last_run_blocker(state, unit) or _compile_blocker(state, unit)
    )


def helper_blocker(kernel: Kernel, users: tuple[str, ...]) -> Blocker:
    """A device function that stores nothing is optimized with the kernels that call it."""
    called = f" It is called by {', '.join(users)}." if users else ""
    remedy = f"Start from a kernel that calls it.{called}"
    return Blocker(Cause.HELPER, f"{kernel.name} is a helper that stores nothing", remedy)


def explain(state: FileState, unit: UnitState) -> str:
    """The answer to "Why can't I optimize this?"."""
    found = blocker(state, unit)
    if found is None:
        return f"{unit.name} can be optimized: run the code action “{start_title(state, unit)}”."
    return f"{unit.name} cannot be optimized: {found.reason}. {found.remedy}"


def _workload_blocker(unit: UnitState) -> Blocker | None:
    view, name = unit.view, unit.name
    if view.unit.entry is None:
        remedy = "The host function that launches it must stand in the same file."
        return Blocker(Cause.NO_ENTRY, f"no function here launches {name}", remedy)
    if view.problems:
        first = view.problems[0]
        where = f"Line {first.line + 1}: {first.message}"
        return Blocker(Cause.MALFORMED_WORKLOAD, "its workload declaration has a mistake", where)
    if view.workload is None or not view.workload.cases:
        remedy = f'Use "Declare a workload for {name}" to say on what inputs to run it.'
        return Blocker(Cause.NO_WORKLOAD, "no workload", remedy)
    if view.refusal is not None:
        return Blocker(Cause.UNSUITABLE, "it cannot be run as it stands", view.refusal)
    return None


def _compile_blocker(state: FileState, unit: UnitState) -> Blocker | None:
    """The compiler's refusal; of targets that the user named, the run's may be another one."""
    if state.settings.targets or not any(facts.compile_failed for facts in unit.facts):
        return None
    why = next(facts.refusal for facts in unit.facts if facts.compile_failed) or ""
    return Blocker(Cause.DOES_NOT_COMPILE, "it does not compile", why)


def _last_run_blocker(state: FileState, unit: UnitState) -> Blocker | None:
    """Only a compile error of this very text: anything else may be mended outside the file."""
    last = unit.last
    refusal = last.report.refusal if last is not None and last.report is not None else None
    if last is None or refusal is None or refusal.kind is not RefusalKind.COMPILE:
        return None
    if last.request.text != state.snapshot.text:
        return None
    return Blocker(Cause.DOES_NOT_COMPILE, "it does not compile", last.message)
