"""Everything that the server asks of the search engine, imported late.

The service costs a few hundred milliseconds to import, which ``initialize`` need not wait for;
``preload`` does it in the analysis thread.
"""

from __future__ import annotations

import gc
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from search_engine.domain.candidate import TextEdit
from search_engine.domain.finding import Finding
from search_engine.domain.kernel import Entry, Module, Unit
from search_engine.domain.run import RunReport
from search_engine.domain.workload import Workload, WorkloadProblem


@dataclass(frozen=True, slots=True)
class Version:
    """A whole text and a unit in it."""

    text: str
    unit: Unit


class IgnoreComment(Protocol):
    """A comment that hides findings."""

    def hides(self, finding: Finding) -> bool:
        """True if the comment is about this finding."""
        ...


def preload() -> None:
    """Import the service and the parser.

    What is there by then stays to the end, so the garbage collector is told to leave it alone: a
    full collection would walk it for some 20 ms in the middle of someone's typing.
    """
    parse_module("", "warm.py")
    gc.freeze()


def parse_module(text: str, path: str) -> Module:
    """Kernels, entries, launches and units of one file; tolerant of broken code."""
    from search_engine import service

    return service.parse_module(text, path)


def workloads_of(
    module: Module, root: str
) -> tuple[tuple[Workload, ...], tuple[WorkloadProblem, ...]]:
    """Declared and recorded workloads, and the mistakes in declarations."""
    from search_engine import service

    return service.all_workloads(module, Path(root))


def default_target() -> str:
    """The target where nothing says otherwise."""
    from search_engine import service

    return service.DEFAULT_TARGET


def ignore_comments(module: Module) -> tuple[IgnoreComment, ...]:
    """The comments of a file that hide findings."""
    from search_engine import service

    return service.ignore_comments(module)


def refusal(module: Module, unit: Unit, workload: Workload | None) -> str | None:
    """Why a unit cannot be run with a workload, naming the remedy; None if it can be."""
    from search_engine import service

    return service.workload_refusal(module, unit, workload)


def declare(module: Module, entry: Entry) -> str:
    """Comment lines, each with its end, for directly above ``entry``."""
    from search_engine import service

    return service.declare(module, entry, None)


def transplant(base: Version, candidate: Version, current: Version) -> tuple[TextEdit, ...]:
    """Edits of ``current`` that give its unit the candidate's form.

    Raises ValueError if the unit has another hash than the base's, or if the candidate changes
    anything outside the unit.
    """
    from search_engine import service

    return service.transplant(
        base.text, base.unit, candidate.text, candidate.unit, current.text, current.unit
    )


def unified_diff(old: str, new: str, path: str) -> str:
    """A diff for people and for ``patch``."""
    from search_engine import service

    return service.unified_diff(old, new, path)


def archived_reports(archive: str, unit_hash: str) -> tuple[RunReport, ...]:
    """Runs of a unit in any environment, newest first; empty if the archive cannot be read."""
    from search_engine import service

    try:
        return service.archive_runs(Path(archive), unit_hash)
    except service.ArchiveError:
        return ()
