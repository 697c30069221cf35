"""A meta-parameter as found in the text: name, value, places, and the values worth trying."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class TunableKind(enum.Enum):
    """Where the value stands."""

    ENTRY_CONSTANT = "constant of the entry"
    ENTRY_DEFAULT = "default value of an entry parameter"
    MODULE_CONSTANT = "constant of the module"
    LAUNCH_ARGUMENT = "argument of the launch"
    LAUNCH_OPTION = "option of the launch"
    SIGNATURE_DEFAULT = "default value in the kernel's signature"
    CONFIG = "autotune list"


class Purpose(enum.Enum):
    """What the kernel does with the value."""

    TILE = "tile"
    """Extent of a block that a loop or the grid repeats."""
    COVER = "cover"
    """Extent of a block that has to cover an axis by itself; left alone."""
    COUNT = "count"
    """Rows, tiles or elements that one program handles one after the other."""
    GROUP = "group"
    """Group of programs that share operands in the L2 cache."""
    SPLIT = "split"
    """Number of parts of one reduction."""
    WARPS = "warps"
    STAGES = "stages"


@dataclass(frozen=True, slots=True)
class Place:
    """Bytes ``[start, end)`` to replace by ``template`` with the value in place of ``{}``."""

    start: int
    end: int
    template: str = "{}"


@dataclass(frozen=True, slots=True)
class Tunable:
    """One meta-parameter.

    ``name`` is the kernel's parameter or the launch option; for a kernel other than the unit's own
    it is ``kernel.NAME``. ``value`` is as written; None where an option is absent. ``places`` are
    edited together. ``ladder`` holds the values that keep the valid domain of the kernel, in
    ascending order; it is empty where the value has to stay. ``taken`` are values (of all names of
    an autotune list) that the user's own list holds.
    """

    name: str
    value: str | None
    kind: TunableKind
    purpose: Purpose
    places: tuple[Place, ...]
    ladder: tuple[int, ...]
    kernel: str
    aliases: tuple[str, ...] = ()

    @property
    def number(self) -> int | None:
        """The present value, where it is an integer literal."""
        return int(self.value) if self.value is not None and self.value.isdigit() else None

    def answers_to(self, name: str) -> bool:
        """True if an assignment to ``name`` means this tunable."""
        return name == self.name or name in self.aliases
