"""Machine code as rows, whatever the vendor, and the counts by source line made from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from search_engine.domain.code import InstructionCount, LineCode, MachineOperation
from search_engine.domain.job import Listing


@dataclass(frozen=True, slots=True)
class CodeRow:
    """One row of a listing; ``operation`` is None for a label.

    ``line`` is the user's, 0-based; ``loop_depth`` counts the loops around the instruction.
    """

    text: str
    operation: MachineOperation | None
    width_bytes: int
    line: int | None
    loop_depth: int


def line_codes(rows: Iterable[CodeRow]) -> tuple[LineCode, ...]:
    """Instructions counted by line and loop depth, in line order, code of no line last."""
    counts: dict[tuple[int | None, int], Counter[tuple[MachineOperation, int]]] = {}
    for row in rows:
        if row.operation is not None:
            counter = counts.setdefault((row.line, row.loop_depth), Counter())
            counter[row.operation, row.width_bytes] += 1
    order = sorted(counts, key=lambda key: (key[0] is None, key[0] or 0, key[1]))
    return tuple(LineCode(line, depth, _counts(counts[line, depth])) for line, depth in order)


def listing(kernel: str, rows: Iterable[CodeRow]) -> Listing:
    """The rows as a text with the user's line of each."""
    rows = tuple(rows)
    return Listing(kernel, "\n".join(row.text for row in rows), tuple(row.line for row in rows))


def _counts(counter: Counter[tuple[MachineOperation, int]]) -> tuple[InstructionCount, ...]:
    order = list(MachineOperation)
    items = sorted(counter.items(), key=lambda item: (order.index(item[0][0]), item[0][1]))
    return tuple(InstructionCount(kind, width, count) for (kind, width), count in items)
