"""Read an ``nvdisasm`` listing into instructions with their places and basic blocks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from search_engine.worker.code_places import Place
from search_engine.worker.natural_loops import loop_depths


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction.

    ``chain`` is the place it was made from, innermost first; ``ptx_row`` the 1-based row of the
    PTX text, or None.
    """

    text: str
    predicate: str
    opcode: str
    operands: str
    chain: tuple[Place, ...]
    ptx_row: int | None

    @property
    def name(self) -> str:
        """The opcode without its modifiers."""
        return self.opcode.partition(".")[0]

    @property
    def parts(self) -> list[str]:
        """The opcode's modifiers."""
        return self.opcode.split(".")[1:]

    @property
    def registers(self) -> list[str]:
        """Registers in the order of the operands, the destination first."""
        return _REGISTER.findall(self.operands)


@dataclass(frozen=True, slots=True)
class Function:
    """Code of one section: labels by the index of the instruction they stand before.

    ``depths`` has the number of loops around each instruction, None where no branch leads.
    """

    instructions: tuple[Instruction, ...]
    labels: tuple[tuple[str, int], ...]
    depths: tuple[int | None, ...]


_PTX_FILE = ".nv_debug_ptx_txt"
_SECTION = re.compile(r"^//-+ \.text\.")
_OTHER_SECTION = re.compile(r"^//-+ ")
_PLACE = re.compile(r'^\s*//## File "(.*?)", line (\d+)(?: inlined at "(.*?)", line (\d+))?')
_LABEL = re.compile(r"^(\.L_\w+|[\w$.]+):")
_INSTRUCTION = re.compile(
    r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:\{\s*)?(?:@(!?U?P\w+)\s+)?([A-Z][\w.]*)\s*(.*?)\s*;"
)
_REGISTER = re.compile(r"\bU?R(?:\d+|Z)\b")
_NEVER = ("!PT", "!UPT")


def read_sass(listing: str) -> tuple[Function, ...]:
    """The functions of a listing, the kernel first. Instructions that never run are left out."""
    functions: list[Function] = []
    reader: _Reader | None = None
    for row in listing.splitlines():
        if _OTHER_SECTION.match(row):
            if reader is not None:
                functions.append(reader.function())
            reader = _Reader() if _SECTION.match(row) else None
        elif reader is not None:
            reader.read(row)
    if reader is not None:
        functions.append(reader.function())
    return tuple(functions)


class _Reader:
    """Reads the rows of one section."""

    def __init__(self) -> None:
        self._instructions: list[Instruction] = []
        self._labels: list[tuple[str, int]] = []
        self._chain: list[Place] = []
        self._chain_used = True
        self._ptx_row: int | None = None

    def read(self, row: str) -> None:
        if match := _INSTRUCTION.match(row):
            self._add(row, *match.groups())
        elif match := _PLACE.match(row):
            self._place(*match.groups())
        elif match := _LABEL.match(row):
            self._labels.append((match[1], len(self._instructions)))

    def function(self) -> Function:
        depths = _depths(self._instructions, dict(self._labels))
        return Function(tuple(self._instructions), tuple(self._labels), tuple(depths))

    def _add(self, row: str, predicate: str | None, opcode: str, operands: str) -> None:
        self._chain_used = True
        if opcode == "NOP" or predicate in _NEVER:
            return
        self._instructions.append(
            Instruction(
                row.strip(), predicate or "", opcode, operands, tuple(self._chain), self._ptx_row
            )
        )

    def _place(self, file: str, line: str, outer: str | None, outer_line: str | None) -> None:
        if file == _PTX_FILE:
            self._ptx_row = int(line)
            return
        if self._chain_used:
            self._chain, self._chain_used = [], False
        self._chain.append((file, int(line)))
        if outer is not None and outer_line is not None:
            self._chain.append((outer, int(outer_line)))


_TARGET = re.compile(r"\.L_\w+")
_JUMPS = ("BRA", "BRX", "BRXU", "JMP", "JMX", "JMXU", "BSYNC", "WARPSYNC")
_ENDS = ("EXIT", "RET", "KILL")


def _depths(instructions: Sequence[Instruction], labels: dict[str, int]) -> list[int | None]:
    if not instructions:
        return []
    targets = _targets(instructions, labels)
    starts = _block_starts(instructions, targets)
    block_of = {start: block for block, start in enumerate(starts)}
    ends = [*starts[1:], len(instructions)]
    successors: list[list[int]] = []
    for end in ends:
        following = [block_of[target] for target in targets.get(end - 1, ())]
        if end < len(instructions) and _falls_through(instructions[end - 1]):
            following.append(block_of[end])
        successors.append(following)
    depths = loop_depths(successors, [b - a for a, b in zip(starts, ends, strict=True)])
    return [depth for depth, a, b in zip(depths, starts, ends, strict=True) for _ in range(a, b)]


def _targets(
    instructions: Sequence[Instruction], labels: dict[str, int]
) -> dict[int, tuple[int, ...]]:
    """Instructions that each jump may lead to; a convergence barrier leads to where it was set."""
    targets: dict[int, tuple[int, ...]] = {}
    barriers: dict[str, tuple[int, ...]] = {}
    for index, item in enumerate(instructions):
        named = (labels[name] for name in _TARGET.findall(item.operands) if name in labels)
        found = tuple(target for target in named if target < len(instructions))
        if item.name == "BSSY":
            barriers[item.operands.partition(",")[0]] = found
        elif item.name == "BSYNC":
            targets[index] = barriers.get(item.operands.strip(), ())
        elif item.name in _JUMPS:
            targets[index] = found
    return targets


def _block_starts(
    instructions: Sequence[Instruction], targets: dict[int, tuple[int, ...]]
) -> list[int]:
    starts = {0, *(target for found in targets.values() for target in found)}
    ends: Iterable[int] = (
        index for index, item in enumerate(instructions) if item.name in (*_JUMPS, *_ENDS)
    )
    starts.update(index + 1 for index in ends if index + 1 < len(instructions))
    return sorted(starts)


def _falls_through(item: Instruction) -> bool:
    if item.name in _ENDS:
        return bool(item.predicate)
    if item.name in ("BRA", "JMP"):
        return bool(item.predicate) or not item.operands.startswith("`")
    if item.name in ("BRX", "BRXU", "JMX", "JMXU"):
        return bool(item.predicate)
    return True
