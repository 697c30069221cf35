"""What features read: a snapshot with the runs, offers and permissions that concern it."""

from __future__ import annotations

from dataclasses import dataclass

from kernel_lsp.facts.places import TargetFacts
from kernel_lsp.offers import Offer
from kernel_lsp.runs import Run
from kernel_lsp.settings import Settings
from kernel_lsp.snapshot import Snapshot, UnitView


@dataclass(frozen=True, slots=True)
class UnitState:
    """A unit and everything known about this form of it."""

    view: UnitView
    run: Run | None
    """The run of this kernel that has not ended, perhaps for an earlier form."""
    last: Run | None
    """The newest ended run for this form."""
    best: Offer | None
    """The fastest verified offer."""
    untimed: tuple[Offer, ...]
    """Checked on the CPU interpreter, never timed."""
    applied: Offer | None
    """The offer that this form came from."""
    stale: Offer | None
    """The best offer for another form of this kernel."""
    details: bool
    """True if findings are shown on their lines."""
    facts: tuple[TargetFacts, ...] = ()
    """What the compiler made of this form, one for each target that was asked."""
    computing: bool = False
    """True while the compiler is asked."""

    @property
    def name(self) -> str:
        """Qualified name of the kernel."""
        return self.view.name

    @property
    def run_is_current(self) -> bool:
        """True if the active run searches the form in the buffer."""
        return self.run is not None and self.run.request.unit_hash == self.view.hash


@dataclass(frozen=True, slots=True)
class FileState:
    """One document as features see it."""

    snapshot: Snapshot
    units: tuple[UnitState, ...]
    settings: Settings
    trusted: bool
    device: bool
    """True if the machine has a GPU that may be used."""
    on_disk: bool
    """False for ``untitled:`` and the like: nothing can be run for those."""

    def unit(self, name: str) -> UnitState | None:
        """The first unit of that name."""
        return next((unit for unit in self.units if unit.name == name), None)


def start_title(state: FileState, unit: UnitState) -> str:
    """What a start offers; without a GPU it does not promise speed."""
    if not state.device:
        return f"Find CPU-checked rewrites for {unit.name} (not timed)"
    return f"Optimize {unit.name}… ({duration(state.settings.budget_seconds)})"


def duration(seconds: float) -> str:
    """``45 s`` or ``2 min``."""
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.3g} min"
