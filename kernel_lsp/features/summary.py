"""The one sentence about a kernel: runs and rewrites, figures of the compiler, findings."""

from __future__ import annotations

from kernel_lsp.features.figures import short
from kernel_lsp.features.findings import MOST_HINTS, findings
from kernel_lsp.features.state import FileState, UnitState
from search_engine.domain.run import Outcome


def summary(state: FileState, unit: UnitState) -> str | None:
    """``softmax: 40 registers, 56 % occupancy (registers); 3 findings. …``; None without data."""
    parts = [part for part in (_rewrites(unit), short(unit.facts)) if part is not None]
    if not parts:
        return None
    if short(unit.facts) is not None:
        parts.append(_findings(state, unit))
    return f"{unit.name}: {'; '.join(parts)}"


def _findings(state: FileState, unit: UnitState) -> str:
    count = sum(not item.warning for item in findings(state, unit))
    if count == 0:
        return "no findings"
    noun = "1 finding" if count == 1 else f"{count} findings"
    if unit.details:
        return f"{noun}, the costliest {MOST_HINTS} shown" if count > MOST_HINTS else noun
    what = f"the costliest {MOST_HINTS}" if count > MOST_HINTS else "them" if count > 1 else "it"
    return f'{noun}. "Show performance details" lists {what}.'


def _rewrites(unit: UnitState) -> str | None:
    if unit.best is not None:
        return f"{unit.best.factor} verified rewrite available ({unit.best.run_id})"
    if unit.untimed:
        count = len(unit.untimed)
        return f"{count} CPU-checked {'rewrite' if count == 1 else 'rewrites'}, not timed"
    if unit.applied is not None and unit.applied.timed:
        return f"{unit.applied.factor} rewrite of {unit.applied.run_id} applied"
    last = unit.last
    if last is not None and last.outcome in (Outcome.NOT_IMPROVED, Outcome.INCONCLUSIVE):
        return last.message
    return None
