"""AMD machine code by line of the user's text, from the compiler's assembly text."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

from search_engine.domain.code import MachineOperation as Op
from search_engine.worker.amd_divisions import divisions
from search_engine.worker.amd_operations import MEMORY, operation, width_bytes
from search_engine.worker.code_places import UserText, located_rows
from search_engine.worker.code_rows import CodeRow

_INSTRUCTION = re.compile(r"\t((?:v|s|ds|global|buffer|flat|scratch|tensor)_\w+)\s*(.*)")
_BLOCK = re.compile(r"(?:\.LBB\w+:|; %bb\.\d+:)")
_LABEL = re.compile(r"(\.LBB\w+|[A-Za-z_]\w*):")
_DEPTH = re.compile(r"Loop Header: Depth=(\d+)|in Loop: Header=\w+ Depth=(\d+)")
_COMMENT = re.compile(r"\s*;")


@functools.lru_cache(maxsize=64)
def amd_rows(assembly: str, user: UserText) -> tuple[CodeRow, ...]:
    """Rows of ``amdgcn`` text; the depth of a loop is what the compiler notes at each block."""
    texts = assembly.split("\n")
    lines = located_rows(assembly, user)
    return tuple(_rows(texts, _operations(texts, lines), lines, _depths(texts)))


def _rows(
    texts: list[str], operations: dict[int, Op], lines: list[int | None], depths: list[int]
) -> Iterator[CodeRow]:
    for index, text in enumerate(texts):
        kind, line, depth = operations.get(index), lines[index], depths[index]
        if kind is not None:
            name = text.split(None, 1)[0]
            width = width_bytes(name) if kind in MEMORY else 0
            yield CodeRow(text.strip(), kind, width, line, depth)
        elif label := _LABEL.match(text):
            yield CodeRow(label[0], None, 0, line, depth)


def _operations(texts: list[str], lines: list[int | None]) -> dict[int, Op]:
    """Class of the instruction in each row that has one."""
    found = {row: match for row, text in enumerate(texts) if (match := _INSTRUCTION.match(text))}
    divided = _divided([(row, match[1], match[2]) for row, match in found.items()], lines)
    operations: dict[int, Op] = {}
    for row, match in found.items():
        if row in divided:
            operations[row] = Op.INTEGER_DIVISION
        elif match[1].startswith("v_rcp_iflag"):
            operations[row] = Op.OTHER  # a step of a division that is counted elsewhere
        else:
            operations[row] = operation(match[1], match[2])
    return operations


def _divided(items: list[tuple[int, str, str]], lines: list[int | None]) -> set[int]:
    """Rows to count as a division; on a line with 64-bit ones only those."""
    rows = [row for row, _, _ in items]
    short, long = divisions([(name, rest.partition(";")[0]) for _, name, rest in items])
    with_long = {lines[rows[index]] for index in long}
    kept = (index for index in short if lines[rows[index]] not in with_long)
    return {rows[index] for index in (*long, *kept)}


def _depths(texts: list[str]) -> list[int]:
    """Loops around each row; notes stand behind a block's label and in the comments below it."""
    depths: list[int] = []
    depth, heading = 0, False
    for text in texts:
        if _BLOCK.match(text):
            depth, heading = 0, True
        elif not _COMMENT.match(text):
            heading = False
        if heading and (match := _DEPTH.search(text)):
            depth = int(match[1] or match[2])
        depths.append(depth)
    return depths
