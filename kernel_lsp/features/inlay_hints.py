"""Inlay hints: registers and occupancy behind the line of a kernel's name, if the user wants."""

from __future__ import annotations

from dataclasses import dataclass

from kernel_lsp.features import figures
from kernel_lsp.features.state import FileState


@dataclass(frozen=True, slots=True)
class InlayHint:
    """Text shown behind a byte offset."""

    offset: int
    label: str
    tooltip: str


def inlay_hints(state: FileState, first_line: int, last_line: int) -> tuple[InlayHint, ...]:
    """Hints of the kernels whose names stand on these lines."""
    if not state.settings.inlay_hints:
        return ()
    found: list[InlayHint] = []
    for unit in state.units:
        line = state.snapshot.line_of(unit.view.unit.kernel.name_span.start)
        label = figures.short(unit.facts)
        if label is not None and first_line <= line <= last_line:
            tooltip = f"{unit.name}, as compiled\n{figures.plain(figures.table(unit.facts))}"
            found.append(InlayHint(state.snapshot.code_of(line)[1], label, tooltip))
    return tuple(found)
