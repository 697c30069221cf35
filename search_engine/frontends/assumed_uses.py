"""What a kernel does with its parameters, as noted while its syntax tree is read.

An *access* is one load, store or atomic. Its address is a sum; the parameters among the addends are
the candidates for the pointer. Which one it is can only be told when everything has been read:
a parameter that is multiplied or compared elsewhere is a number.
"""

from __future__ import annotations

import ast
import enum
from dataclasses import dataclass, field, replace


class Evidence(enum.Enum):
    """What a use says about the type of a parameter, or of the data behind it."""

    POINTER = "pointer"
    """Its element type is asked for, or it is the base of a block pointer."""
    INTEGER = "integer"
    FLOAT = "float"
    INDEX = "index"
    """Loaded data that becomes part of an address or a loop bound."""
    BITS = "bits"
    """Shifted, or combined bit by bit with an integer."""
    CONDITION = "condition"
    WIDENED = "widened"
    """Converted to fp32 as soon as it is loaded."""
    DOT = "dot"
    """Operand of a dot without a conversion in between."""
    POINTEE = "pointee"
    """An address itself."""
    UNIT = "unit"
    """The last stride of a tensor descriptor, which must be 1."""
    SPREAD = "spread"
    """A factor of a block of indices: the stride of an axis that lanes lie along."""


@dataclass(frozen=True, slots=True)
class Value:
    """What is known about the value of an expression.

    ``ways`` are the sums of parameters that it may be, one for each branch; ``loads`` are
    accesses whose data it holds; ``direct`` if that data is unchanged.
    """

    ways: tuple[tuple[str, ...], ...] = ()
    loads: frozenset[int] = frozenset()
    direct: bool = False
    kind: str | None = None
    """``int``, ``float``, ``bool`` or ``descriptor``."""
    dtype: str | None = None
    """Triton's name of a type that it was converted to."""
    constant: str | None = None
    """The ``tl.constexpr`` parameter that this is."""
    made_of: tuple[str, ...] = ()
    """Constants that this is computed from, if it is computed from nothing else."""
    block: bool = False
    """Made of ``tl.arange``."""
    axes: tuple[str, ...] = ()
    """The constant that is the length of each axis of a block; '' for one that is not known."""
    unit: bool = False
    """Has a term that grows by one from lane to lane, so an axis whose stride is 1 by itself."""
    items: tuple[Value, ...] = ()

    @property
    def addends(self) -> tuple[str, ...]:
        """All parameters in any of the sums."""
        return tuple(dict.fromkeys(name for way in self.ways for name in way))

    def computed(self, kind: str | None = None) -> Value:
        """The result of arithmetic on it: no address any more, and not what was loaded."""
        return Value(loads=self.loads, kind=kind or self.kind, block=self.block, axes=self.axes)

    def cast(self, kind: str | None, dtype: str | None) -> Value:
        """The same numbers in another type."""
        return replace(self.computed(), kind=kind, dtype=dtype, unit=self.unit)


NOTHING = Value()
INTEGER = Value(kind="int")


def parameter_value(name: str) -> Value:
    """The value of a parameter that is no constant."""
    return Value(ways=((name,),))


def total(left: Value, right: Value) -> Value:
    """The sum of both: every way of one with every way of the other."""
    pairs = [(*a, *b) for a in left.ways or ((),) for b in right.ways or ((),)]
    ways = tuple(dict.fromkeys(pairs))[:_MOST_WAYS]
    return replace(union(left, right), ways=ways if ways != ((),) else (), items=())


def union(left: Value, right: Value) -> Value:
    """A value that may be either."""
    items = ()
    if left.items and len(left.items) == len(right.items):
        items = tuple(union(a, b) for a, b in zip(left.items, right.items, strict=True))
    return Value(
        ways=tuple(dict.fromkeys((*left.ways, *right.ways)))[:_MOST_WAYS],
        loads=left.loads | right.loads,
        direct=(left.direct and (right.direct or not right.loads))
        or (right.direct and not left.loads),
        kind=joined_kind(left.kind, right.kind),
        dtype=left.dtype if left.dtype == right.dtype else None,
        block=left.block or right.block,
        unit=left.unit or right.unit,
        axes=_broadcast(left.axes, right.axes),
        items=items,
    )


def _broadcast(left: tuple[str, ...], right: tuple[str, ...]) -> tuple[str, ...]:
    if len(left) != len(right):
        return max(left, right, key=len)
    return tuple(a or b for a, b in zip(left, right, strict=True))


def together(values: tuple[Value, ...]) -> Value:
    """Everything that any of the values holds; each one under ``items``."""
    result = NOTHING
    for value in values:
        result = union(result, value)
    return replace(result, direct=False, dtype=None, items=values)


def joined_kind(left: str | None, right: str | None) -> str | None:
    """Kind of the result of arithmetic: a float wins, an unknown kind stays unknown."""
    if "float" in (left, right):
        return "float"
    return left if left == right else None


_MOST_WAYS = 12
"""Branches in branches multiply."""


@dataclass(slots=True)
class Access:
    """One load, store or atomic: the sums of parameters its address may be, and what is stored."""

    candidates: tuple[tuple[str, ...], ...]
    evidence: set[Evidence] = field(default_factory=set[Evidence])
    stored_type: str | None = None
    stored_kind: str | None = None
    copied: frozenset[int] = frozenset()
    """Loads whose data is stored unchanged."""
    stores: bool = False
    atomic: bool = False
    unit: bool = False
    """Lanes step by one element along an axis without a stride in the text."""


@dataclass(frozen=True, slots=True)
class NamedConstant:
    """A constant of the module that something is compared with."""

    name: str


@dataclass(slots=True)
class ConstantUse:
    """How a ``tl.constexpr`` parameter is used."""

    shape: bool = False
    """A length of ``tl.arange`` or of a block's shape: a power of two."""
    square: bool = False
    """The length of two axes of one block."""
    factor: bool = False
    """Such a length is its product with another constant."""
    flag: bool = False
    dtype: bool = False
    called: bool = False
    unrolled: bool = False
    """Trip count of a ``tl.static_range``."""
    arithmetic: bool = False
    compared: list[object] = field(default_factory=list[object])
    """Literals and ``NamedConstant`` that it is compared with, in the order of the text."""


@dataclass(slots=True)
class KernelUses:
    """Everything that was noted about one kernel and its helpers."""

    accesses: list[Access] = field(default_factory=list[Access])
    parameters: dict[str, set[Evidence]] = field(default_factory=dict[str, set[Evidence]])
    constants: dict[str, ConstantUse] = field(default_factory=dict[str, ConstantUse])
    optional: set[str] = field(default_factory=set[str])
    """Parameters that are compared with None."""
    descriptors: set[str] = field(default_factory=set[str])
    """Parameters that are tensor descriptors made by the host."""
    tuples: set[str] = field(default_factory=set[str])
    """Parameters that are tuples: they are indexed by a number, or their length is asked for."""
    has_dot: bool = False
    scaled: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    """Parameters that loaded data is multiplied with: floats, if the data is no index."""
    _index: dict[tuple[int, tuple[tuple[str, ...], ...]], int] = field(
        default_factory=dict[tuple[int, tuple[tuple[str, ...], ...]], int]
    )

    def constant(self, name: str) -> ConstantUse:
        """The record of a constant, made on first use."""
        return self.constants.setdefault(name, ConstantUse())

    def parameter(self, name: str, evidence: Evidence) -> None:
        """Note evidence about a parameter."""
        self.parameters.setdefault(name, set()).add(evidence)

    def data(self, value: Value, evidence: Evidence) -> None:
        """Note evidence about the loads that a value holds."""
        for load in value.loads:
            self.accesses[load].evidence.add(evidence)

    def number(self, value: Value, evidence: Evidence) -> None:
        """Note that a value is a number: if it is a parameter, that is no pointer."""
        if len(value.addends) == 1:
            self.parameter(value.addends[0], evidence)
        if value.constant is not None:
            self.constant(value.constant).arithmetic = True
        if evidence is Evidence.FLOAT:
            self.data(value, evidence)

    def access(self, node: ast.AST, address: Value) -> int:
        """Index of the access at this place. Loads that its address is made of are indices."""
        self.data(address, Evidence.INDEX)
        unit = address.unit
        key = (id(node), address.ways)
        if key not in self._index:
            self._index[key] = len(self.accesses)
            self.accesses.append(Access(address.ways))
        self.accesses[self._index[key]].unit |= unit
        return self._index[key]

    def stored(self, index: int, value: Value) -> None:
        """Note what an access stores."""
        access = self.accesses[index]
        access.stores = True
        access.stored_type = value.dtype or access.stored_type
        access.stored_kind = value.kind or access.stored_kind
        if value.direct:
            access.copied |= value.loads


_NUMBER = frozenset({Evidence.INTEGER, Evidence.FLOAT})


def pointers_of(uses: KernelUses, order: tuple[str, ...]) -> dict[int, tuple[str, ...]]:
    """Index of each access to the parameters that it goes through, one for each branch.

    ``order`` are the kernel's parameters: of several candidates the first in the signature wins,
    because pointers stand before sizes in nearly all kernels.
    """
    found: dict[int, tuple[str, ...]] = {}
    known = {name for name, notes in uses.parameters.items() if Evidence.POINTER in notes}
    for _ in range(2):
        for index, access in enumerate(uses.accesses):
            ways = [_choose(way, uses, known, order) for way in access.candidates]
            found[index] = tuple(dict.fromkeys(name for name in ways if name is not None))
            known.update(found[index])
    return found


def looks_like_pointer(name: str) -> bool:
    """True for ``x_ptr``, ``XPtr``, ``ptr_x`` and the like."""
    lower = name.lower()
    return lower.endswith(("ptr", "ptrs", "pointer")) or lower.startswith("ptr_")


def _choose(
    candidates: tuple[str, ...], uses: KernelUses, known: set[str], order: tuple[str, ...]
) -> str | None:
    names = [name for name in candidates if name in order]

    def rank(name: str) -> tuple[bool, bool, bool, int]:
        number = bool(uses.parameters.get(name, set()) & _NUMBER)
        return (number, name not in known, not looks_like_pointer(name), order.index(name))

    return min(names, key=rank, default=None)
