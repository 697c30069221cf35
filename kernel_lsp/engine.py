"""Everything that the server asks of the search engine, imported late.

The engine's parser costs tens of milliseconds to import, which ``initialize`` need not wait for;
``preload`` does it in the analysis thread.
"""

from __future__ import annotations

from search_engine.domain.candidate import TextEdit
from search_engine.domain.kernel import Entry, Module, Unit
from search_engine.domain.run import RunReport
from search_engine.domain.workload import Workload, WorkloadProblem


def preload() -> None:
    """Import the parser."""
    parse_module("", "warm.py")


def parse_module(text: str, path: str) -> Module:
    """Kernels, entries, launches and units of one file; tolerant of broken code."""
    from search_engine import service

    return service.parse_module(text, path)


def parse_workloads(module: Module) -> tuple[tuple[Workload, ...], tuple[WorkloadProblem, ...]]:
    """Declared workloads and the mistakes in declarations."""
    from search_engine import service

    return service.parse_workloads(module)


def declare(module: Module, entry: Entry) -> str:
    """The whole text with a first declaration above ``entry``."""
    from search_engine import service

    return service.declare(module, entry)


def hunks(old: str, new: str) -> tuple[TextEdit, ...]:
    """Minimal edits, in bytes of ``old``, that turn it into ``new``."""
    from search_engine import service

    return service.hunks(old, new)


def transplant(candidate: str, original: Unit, current: Module, unit: Unit) -> str:
    """The current text with its unit replaced by the candidate's."""
    from search_engine import service

    return service.transplant(candidate, original, current, unit)


def unified_diff(old: str, new: str, path: str) -> str:
    """A diff for people and for ``patch``."""
    from search_engine import service

    return service.unified_diff(old, new, path)


def archive_runs(archive: str, unit_hash: str) -> tuple[RunReport, ...]:
    """Finished runs of a unit on any environment, newest first."""
    from search_engine import service

    return service.archive_runs(archive, unit_hash, None)
