"""The rungs in their order. The order lives here and nowhere else."""

from __future__ import annotations

from search_engine.domain.run import Rung
from search_engine.rungs._base import RungStep
from search_engine.rungs.audit import Audit
from search_engine.rungs.compile import Compile
from search_engine.rungs.estimate import Estimate
from search_engine.rungs.full_correctness import FullCorrectness
from search_engine.rungs.full_timing import FullTiming
from search_engine.rungs.parse import Parse
from search_engine.rungs.profile import Profile
from search_engine.rungs.quick_timing import QuickTiming
from search_engine.rungs.smoke import Smoke

RUNGS: tuple[RungStep, ...] = (
    Parse(),
    Compile(),
    Estimate(),
    Smoke(),
    QuickTiming(),
    FullCorrectness(),
    FullTiming(),
    Profile(),
    Audit(),
)


def step(rung: Rung) -> RungStep:
    """The step that answers for a rung."""
    return next(item for item in RUNGS if item.rung is rung)
