"""Integer divisions in NVIDIA code, which has no instruction for them.

A 32-bit quotient is made from a floating-point reciprocal of the divisor: ``I2F.RP``, ``MUFU.RCP``,
an addition, ``F2I``, one ``IMAD.HI`` that refines it, and then one ``IMAD.HI`` for each dividend.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence

from search_engine.worker.sass import Instruction


class _Value(enum.Enum):
    """What a register holds on the way from divisor to quotient."""

    RECIPROCAL = "floating-point reciprocal"
    APPROXIMATE = "integer reciprocal"
    REFINED = "refined integer reciprocal"


_COPIES = ("MOV", "UMOV", "R2UR")


def divisions(instructions: Sequence[Instruction]) -> tuple[set[int], set[int]]:
    """``(quotients, parts)``: indices to count as a division, and steps that belong to one.

    A reciprocal whose quotients are not recognised is counted once itself.
    """
    finder = _Finder()
    for index, item in enumerate(instructions):
        finder.see(index, item)
    quotients = finder.quotients | {start for start, found in finder.found.items() if not found}
    return quotients, finder.parts - quotients


class _Finder:
    """Follows the values through registers in program order."""

    def __init__(self) -> None:
        self.quotients: set[int] = set()
        self.parts: set[int] = set()
        self.found: dict[int, int] = {}
        """Quotients by the index of the conversion that their reciprocal began with."""
        self._held: dict[str, tuple[_Value, int]] = {}

    def see(self, index: int, item: Instruction) -> None:
        registers = item.registers
        if not registers:
            return
        target, sources = registers[0], registers[1:]
        held = next((self._held[name] for name in sources if name in self._held), None)
        made = self._made(index, item, sources, held)
        if "WIDE" in item.parts:
            self._held.pop(target, None)
            target = _next_register(target)
        if made is None:
            self._held.pop(target, None)
        else:
            self._held[target] = made

    def _made(
        self, index: int, item: Instruction, sources: list[str], held: tuple[_Value, int] | None
    ) -> tuple[_Value, int] | None:
        if item.name == "I2F" and "RP" in item.parts:
            self.found[index] = 0
            self.parts.add(index)
            return _Value.RECIPROCAL, index
        if held is None:
            return None
        value, start = held
        if value is _Value.RECIPROCAL:
            return self._of_reciprocal(index, item, start)
        if item.name in _COPIES or (item.name == "IMAD" and "MOV" in item.parts):
            return held if not item.operands.rpartition(",")[2].strip().startswith("-") else None
        if item.name in ("IMAD", "UIMAD") and ("HI" in item.parts or "WIDE" in item.parts):
            return self._of_product(index, sources, value, start)
        return None

    def _of_reciprocal(self, index: int, item: Instruction, start: int) -> tuple[_Value, int]:
        if item.name == "F2I":
            self.parts.add(index)
            return _Value.APPROXIMATE, start
        if item.name == "MUFU":
            self.parts.add(index)
        return _Value.RECIPROCAL, start

    def _of_product(
        self, index: int, sources: list[str], value: _Value, start: int
    ) -> tuple[_Value, int] | None:
        if value is _Value.APPROXIMATE:
            first = self._held.get(sources[0])
            return (_Value.REFINED, start) if first == (value, start) else None
        self.quotients.add(index)
        self.found[start] += 1
        return None


def _next_register(name: str) -> str:
    prefix = name.rstrip("0123456789")
    number = name[len(prefix) :]
    return f"{prefix}{int(number) + 1}" if number else name
