"""What the compiler made of a kernel, in words and tables. Nothing here was measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from kernel_lsp.facts.places import TargetFacts
from search_engine.domain.kernel import OperationKind
from search_engine.domain.summary import AccessWidth, KernelSummary

Table = tuple[tuple[str, ...], ...]
"""Rows of cells; the first row is the heading."""

_NOUNS = {
    OperationKind.LOAD: ("load", "loads"),
    OperationKind.STORE: ("store", "stores"),
    OperationKind.ATOMIC: ("atomic", "atomics"),
    OperationKind.DOT: ("matrix instruction", "matrix instructions"),
}
"""Of machine instructions."""


def short(facts: tuple[TargetFacts, ...]) -> str | None:
    """``40 registers, 56 % occupancy (registers)``, of several targets side by side."""
    known = [(item.target, item.summary) for item in facts if item.summary is not None]
    if not known:
        return None
    parts = [_short(summary) for _, summary in known]
    if len(facts) == 1:
        return parts[0]
    return "; ".join(f"{target}: {part}" for (target, _), part in zip(known, parts, strict=True))


def table(facts: tuple[TargetFacts, ...]) -> Table:
    """Figures of one kernel, a column for each target; empty if there are none."""
    known = [(item.target, item.summary) for item in facts if item.summary is not None]
    if not known:
        return ()
    columns = [dict(_rows(summary)) for _, summary in known]
    labels = dict.fromkeys(label for column in columns for label in column)
    heading = ("", *(target for target, _ in known))
    return (heading, *((label, *(c.get(label, "–") for c in columns)) for label in labels))


def line_accesses(facts: TargetFacts, first: int, last: int) -> str | None:
    """``8 loads of 16 B, 4 of 4 B``: the machine's instructions of some lines, inclusive."""
    if facts.summary is None:
        return None
    return widths(access for access in facts.summary.accesses if first <= access.line <= last)


def widths(accesses: Iterable[AccessWidth]) -> str | None:
    """Instructions by kind and width, widest first; None if there are none."""
    counts: dict[OperationKind, Counter[int]] = {}
    for access in accesses:
        counts.setdefault(access.kind, Counter())[access.width_bytes] += access.count
    parts = [_kind(kind, counts[kind]) for kind in _NOUNS if kind in counts]
    return ", ".join(parts) or None


def percent(share: float) -> str:
    """``56 %``."""
    return f"{100 * share:.0f} %"


def size(count: int) -> str:
    """``96 KiB`` or ``512 B``."""
    value, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{value:.4g} {unit}"


def markdown(rows: Table) -> str:
    """A table with padded cells: some clients show its source."""
    if not rows:
        return ""
    spans = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [_line(row, spans) for row in rows]
    rule = "|".join(["", *("-" * (span + 2) for span in spans), ""])
    return "\n".join([lines[0], rule, *lines[1:]])


def plain(rows: Table) -> str:
    """The same as aligned text."""
    rows = rows if len(rows) > 1 and len(rows[0]) > 2 else rows[1:]
    if not rows:
        return ""
    spans = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    padded = (
        "  ".join(cell.ljust(span) for cell, span in zip(row, spans, strict=True)) for row in rows
    )
    return "\n".join(line.rstrip() for line in padded)


def _short(summary: KernelSummary) -> str:
    spilled = f", {summary.spill_bytes} B spilled" if summary.spill_bytes else ""
    assumed = ", assumed launch" if summary.assumed else ""
    occupancy = f"{percent(summary.occupancy)} occupancy{_limited(summary)}"
    return f"{summary.registers} registers{spilled}, {occupancy}{assumed}"


def _limited(summary: KernelSummary) -> str:
    """What binds it; nothing does at 100 %."""
    if summary.occupancy >= 1.0 or not summary.limiters:
        return ""
    return f" ({' and '.join(summary.limiters)})"


def _rows(summary: KernelSummary) -> Iterable[tuple[str, str]]:
    yield "registers a thread", str(summary.registers)
    yield "spilled a thread", f"{summary.spill_bytes} B" if summary.spill_bytes else "none"
    yield "shared memory a block", size(summary.shared_bytes)
    yield "occupancy", f"{percent(summary.occupancy)}{_limited(summary)}"
    yield "warps, stages", f"{summary.warps}, {summary.stages}"
    yield "instructions", str(summary.instructions)
    yield "matrix instructions", str(summary.matrix_instructions)
    for kind in (OperationKind.LOAD, OperationKind.STORE, OperationKind.ATOMIC):
        found = [access for access in summary.accesses if access.kind is kind]
        if found:
            yield f"global {_NOUNS[kind][1]}", _widths_only(found)
    if summary.bytes is not None:
        yield "moves at least", size(summary.bytes)
    if summary.floor_us is not None:
        yield "memory floor", f"{summary.floor_us:.3g} µs (datasheet bound)"
    yield "launch", _launch(summary)


def _launch(summary: KernelSummary) -> str:
    if summary.assumed:
        return "assumed from the text"
    grid = "×".join(str(extent) for extent in summary.grid or ())
    return f"{grid} programs" if grid else "of the workload"


def _widths_only(accesses: list[AccessWidth]) -> str:
    counts: Counter[int] = Counter()
    for access in accesses:
        counts[access.width_bytes] += access.count
    return ", ".join(f"{counts[width]} × {width} B" for width in sorted(counts, reverse=True))


def _kind(kind: OperationKind, counts: Counter[int]) -> str:
    parts: list[str] = []
    for width in sorted(counts, reverse=True):
        noun = "" if parts else f" {_NOUNS[kind][counts[width] != 1]}"
        parts.append(f"{counts[width]}{noun}" + (f" of {width} B" if width else ""))
    return ", ".join(parts)


def _line(row: tuple[str, ...], spans: list[int]) -> str:
    cells = (cell.ljust(span) for cell, span in zip(row, spans, strict=True))
    return f"| {' | '.join(cells)} |"
