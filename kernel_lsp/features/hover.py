"""Hover over a kernel's name: what is known about it, with age and device."""

from __future__ import annotations

from dataclasses import dataclass

from kernel_lsp.features.blockers import explain
from kernel_lsp.features.evidence import evidence_text
from kernel_lsp.features.state import FileState, UnitState


@dataclass(frozen=True, slots=True)
class Hover:
    """Plain text for the bytes ``[start, end)``."""

    start: int
    end: int
    text: str


def hover(state: FileState, offset: int) -> Hover | None:
    """Text for the kernel whose name or decorators hold the byte ``offset``."""
    for unit in state.units:
        kernel = unit.view.unit.kernel
        spans = (kernel.name_span, *(decorator.span for decorator in kernel.decorators))
        for span in spans:
            if span.start <= offset <= span.end:
                return Hover(span.start, span.end, _text(state, unit))
    return None


def _text(state: FileState, unit: UnitState) -> str:
    offer = unit.best or unit.applied or (unit.untimed[0] if unit.untimed else None)
    parts: list[str] = []
    if unit.run is not None:
        parts.append(f"{unit.name}: {unit.run.line()}")
    if offer is not None:
        parts.append(evidence_text(offer))
    elif unit.last is not None:
        parts.append(f"{unit.name}: {unit.last.message}")
    elif unit.run is None:
        parts.append(explain(state, unit))
    return "\n\n".join(parts)
