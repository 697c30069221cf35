"""NVIDIA machine code by line of the user's text."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Iterator

from search_engine.domain.code import MachineOperation as Op
from search_engine.worker.code_places import UserText, located_rows
from search_engine.worker.code_rows import CodeRow
from search_engine.worker.sass import Function, Instruction, read_sass
from search_engine.worker.sass_divisions import divisions
from search_engine.worker.sass_operations import MEMORY, operation, width_bytes

_SPILL = '"SpillRefill"'
_DEPOT = re.compile(r"\.local .*__local_depot\d+\[(\d+)\]")
_STACK_ADDRESS = re.compile(r"\[R1(?:\+(0x[0-9a-f]+))?\]")
_SPILLS = {Op.LOCAL_LOAD: Op.SPILL_LOAD, Op.LOCAL_STORE: Op.SPILL_STORE}


@functools.lru_cache(maxsize=64)
def nvidia_rows(listing: str, ptx: str, user: UserText) -> tuple[CodeRow, ...]:
    """Rows of an ``nvdisasm`` listing of the cubin that was assembled from ``ptx``.

    The row of the PTX text decides where an instruction comes from, since the line table names
    only the innermost function in Triton before 3.9.
    """
    lines = located_rows(ptx, user)
    local = _LocalMemory(_SPILL in listing, sum(map(int, _DEPOT.findall(ptx))))
    return tuple(
        row for function in read_sass(listing) for row in _rows(function, lines, local, user)
    )


@dataclasses.dataclass(frozen=True)
class _LocalMemory:
    """Tells spills from local arrays: by the tool's mark, else by where the arrays end."""

    marked: bool
    arrays_bytes: int

    def kind(self, item: Instruction, found: Op) -> Op:
        if self.marked:
            spilled = _SPILL in item.operands
        else:
            address = _STACK_ADDRESS.search(item.operands)
            offset = int(address[1] or "0", 16) if address else -1
            spilled = self.arrays_bytes == 0 or offset >= self.arrays_bytes
        return _SPILLS[found] if spilled else found


def _rows(
    function: Function, ptx_lines: list[int | None], local: _LocalMemory, user: UserText
) -> Iterator[CodeRow]:
    lines = _lines(function, ptx_lines, user)
    operations = _operations(function, local, lines)
    labels: dict[int, list[str]] = {}
    for label, index in function.labels:
        labels.setdefault(index, []).append(label)
    for index, item in enumerate(function.instructions):
        line, depth = lines[index], function.depths[index] or 0
        yield from (CodeRow(f"{label}:", None, 0, line, depth) for label in labels.get(index, ()))
        kind = operations[index]
        width = width_bytes(item) if kind in MEMORY else 0
        yield CodeRow(item.text, kind, width, line, depth)


def _lines(function: Function, ptx_lines: list[int | None], user: UserText) -> list[int | None]:
    """The user's line of each instruction.

    Places are printed where they change; a subroutine of the assembler's own, behind the kernel,
    has none and must not inherit the last one.
    """
    lines: list[int | None] = []
    last: Instruction | None = None
    for item, depth in zip(function.instructions, function.depths, strict=True):
        if depth is not None:
            last = item
        stale = depth is None and last is not None and _place(item) == _place(last)
        lines.append(None if stale else _line(item, ptx_lines, user))
    return lines


def _place(item: Instruction) -> object:
    return item.chain, item.ptx_row


def _line(item: Instruction, ptx_lines: list[int | None], user: UserText) -> int | None:
    """By the PTX text; where that names no line (spill code), by the assembler's own table.

    The table may hold lines that inline assembly made up, which are none of the PTX text's.
    """
    row = item.ptx_row
    line = ptx_lines[row - 1] if row is not None and row <= len(ptx_lines) else None
    if line is not None:
        return line
    line = user.line(item.chain)
    return line if row is None or line in ptx_lines else None


def _operations(function: Function, local: _LocalMemory, lines: list[int | None]) -> list[Op]:
    quotients, parts = divisions(function.instructions)
    operations: list[Op] = []
    for index, item in enumerate(function.instructions):
        found = operation(item)
        if found in _SPILLS:
            found = local.kind(item, found)
        elif index in quotients and function.depths[index] is not None:
            found = Op.INTEGER_DIVISION
        elif index in parts:
            found = Op.OTHER
        operations.append(found)
    return _each_division_once(function, operations, lines)


def _each_division_once(
    function: Function, operations: list[Op], lines: list[int | None]
) -> list[Op]:
    """Of a line that calls the subroutine for 64-bit quotients, only the calls count.

    Beside each call stands a short way for small values, which is a quotient too.
    """
    divided = [index for index, kind in enumerate(operations) if kind is Op.INTEGER_DIVISION]
    called = {lines[index] for index in divided if function.instructions[index].name == "CALL"}
    short = {
        index for index in divided
        if lines[index] in called and function.instructions[index].name != "CALL"
    }  # fmt: skip
    return [Op.OTHER if index in short else kind for index, kind in enumerate(operations)]
