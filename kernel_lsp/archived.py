"""Offers from events and from the archive. Slow: parses the candidate's text; call in a thread."""

from __future__ import annotations

from kernel_lsp import engine
from kernel_lsp.edits import EditRefused, applying
from kernel_lsp.offers import Offer
from kernel_lsp.snapshot import Snapshot, UnitView
from search_engine.domain.event import ImprovementFound
from search_engine.domain.kernel import Module, Unit
from search_engine.domain.run import Outcome, RunReport

NEWEST_RUNS = 5
"""Archived runs of one unit that are read; older ones are for the command line."""


def make_offer(
    run_id: str, name: str, path: str, unit_hash: str, original: str, event: ImprovementFound
) -> Offer:
    """The offer of one event."""
    unit = _unit_named(engine.parse_module(event.candidate.text, path), name)
    candidate_hash = unit.hash if unit else ""
    return Offer(
        run_id,
        name,
        path,
        unit_hash,
        candidate_hash,
        original,
        event.candidate,
        event.evidence,
        event.verified,
    )


def load_offers(archive: str, snapshot: Snapshot, views: tuple[UnitView, ...]) -> tuple[Offer, ...]:
    """Offers that the archive has for units in the form of the buffer, oldest first."""
    found: list[Offer] = []
    for view in views:
        for report in engine.archived_reports(archive, view.hash)[:NEWEST_RUNS]:
            event = _event_of(report)
            offer = _archived_offer(report.run, event, snapshot, view) if event else None
            if offer is not None:
                found.append(offer)
    return tuple(reversed(found))


def _event_of(report: RunReport) -> ImprovementFound | None:
    """What a finished or cut off run had found last, if that may be offered."""
    if report.best is None or report.evidence is None:
        return None
    if report.outcome not in (Outcome.IMPROVED, Outcome.UNMEASURED):
        return None
    verified = report.outcome is Outcome.IMPROVED
    return ImprovementFound(report.best, report.evidence, verified, report.spend.wall_seconds)


def _archived_offer(
    run_id: str, event: ImprovementFound, snapshot: Snapshot, view: UnitView
) -> Offer | None:
    """The archive keeps whole files; one is usable while it differs from today's in the unit."""
    offer = make_offer(run_id, view.name, snapshot.path, view.hash, snapshot.text, event)
    try:
        applying(offer, snapshot)
    except EditRefused:
        return None  # the file has changed around the unit: a new run will find it again
    return offer


def _unit_named(module: Module, name: str) -> Unit | None:
    return next((unit for unit in module.units if unit.kernel.qualified_name == name), None)
