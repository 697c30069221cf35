"""Hover: what is known about a kernel over its name, and about a line over its code."""

from __future__ import annotations

from dataclasses import dataclass

from kernel_lsp.features import figures
from kernel_lsp.features.blockers import explain
from kernel_lsp.features.evidence import evidence_text
from kernel_lsp.features.findings import findings
from kernel_lsp.features.state import FileState, UnitState


@dataclass(frozen=True, slots=True)
class Hover:
    """Text for the bytes ``[start, end)``, for clients with and without Markdown."""

    start: int
    end: int
    text: str
    markdown: str


def hover(state: FileState, offset: int) -> Hover | None:
    """Text for the kernel whose name or decorators hold the byte ``offset``, or for its line."""
    for unit in state.units:
        kernel = unit.view.unit.kernel
        spans = (kernel.name_span, *(decorator.span for decorator in kernel.decorators))
        for span in spans:
            if span.start <= offset <= span.end:
                return _kernel_hover(state, unit, span.start, span.end)
    return _line_hover(state, state.snapshot.line_of(offset))


def _kernel_hover(state: FileState, unit: UnitState, start: int, end: int) -> Hover:
    rows, status, notes = figures.table(unit.facts), _status(state, unit), _notes(unit)
    lists = "\n".join(f"- {note}" for note in notes)
    marked = [f"**{unit.name}**, as compiled; nothing here was measured" if rows else ""]
    marked += [figures.markdown(rows), lists, f"```text\n{status}\n```" if status else ""]
    plain = [f"{unit.name}, as compiled; nothing here was measured" if rows else ""]
    plain += [figures.plain(rows), lists, status]
    return Hover(start, end, _joined(plain), _joined(marked))


def _line_hover(state: FileState, line: int) -> Hover | None:
    """Machine instructions and findings of one line, of every kernel that has some there."""
    plain: list[str] = []
    for unit in state.units:
        plain += _line_texts(state, unit, line)
    if not plain:
        return None
    start, end = state.snapshot.code_of(line)
    unique = list(dict.fromkeys(plain))
    return Hover(start, end, "\n".join(unique), "\n".join(f"- {text}" for text in unique))


def _line_texts(state: FileState, unit: UnitState, line: int) -> list[str]:
    found: list[str] = []
    first, last = _operation(unit, line)
    for facts in unit.facts:
        accesses = figures.line_accesses(facts, first, last)
        if accesses is not None:
            found.append(f"{facts.target}: {accesses} a thread")
    found += [
        f"{shown.finding.name}: {shown.message}"
        for shown in findings(state, unit)
        if shown.finding.line <= line <= shown.finding.end_line
    ]
    return found


def _operation(unit: UnitState, line: int) -> tuple[int, int]:
    """Lines of the load, store or dot that reaches the line; one may stand on several."""
    kernels = (unit.view.unit.kernel, *unit.view.unit.helpers)
    spans = [
        o.span for k in kernels for o in k.operations if o.span.line <= line <= o.span.end_line
    ]
    inner = min(spans, key=lambda span: span.end - span.start, default=None)
    return (inner.line, inner.end_line) if inner is not None else (line, line)


def _notes(unit: UnitState) -> list[str]:
    notes = [note for facts in unit.facts for note in facts.notes]
    notes += [f.refusal for f in unit.facts if f.refusal is not None and f.summary is not None]
    return list(dict.fromkeys(notes))


def _status(state: FileState, unit: UnitState) -> str:
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


def _joined(parts: list[str]) -> str:
    return "\n\n".join(part for part in parts if part)
