"""What the compiler can prove about a block of integers or addresses, axis by axis.

The same three figures as in Triton's axis analysis, which decides how wide an access may be:
``contiguity`` (so many neighbours count up by one), ``divisibility`` (of the first of them; bytes
for addresses) and ``constancy`` (so many neighbours are equal). All are powers of two. The rules
follow ``lib/Analysis/AxisInfo.cpp`` of Triton 3.4 to 3.6.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

_ZERO = 1 << 40
"""Divisibility of zero: every power of two that can matter."""


@dataclass(frozen=True, slots=True)
class Axis:
    """Along one axis."""

    contiguity: int
    divisibility: int
    constancy: int
    step: int | None = None
    """Difference between neighbours, in elements; None if it is not a known number."""


@dataclass(frozen=True, slots=True)
class Value:
    """A scalar (``sizes`` empty, one axis) or a block; ``element_bytes`` is 0 for no pointer.

    ``argument``: a parameter as it was passed. The compiler drops hints on those. ``base`` is the
    parameter that a pointer comes from.
    """

    sizes: tuple[int, ...]
    axes: tuple[Axis, ...]
    constant: int | None = None
    element_bytes: int = 0
    argument: bool = False
    base: str = ""


def scalar(
    divisibility: int = 1, element_bytes: int = 0, *, argument: bool = False, base: str = ""
) -> Value:
    """A scalar of which only its divisibility is known; of a pointer that of its address."""
    return Value((), (Axis(1, divisibility, 1, 0),), None, element_bytes, argument, base)


def constant(value: int) -> Value:
    """A number that the compiler knows."""
    return Value((), (Axis(1, _power_of_two_in(value), 1, 0),), value)


def arange(start: int, end: int) -> Value:
    """``tl.arange(start, end)``."""
    return Value((end - start,), (Axis(end - start, _power_of_two_in(start), 1, 1),))


def filled(sizes: tuple[int, ...], value: Value) -> Value:
    """A scalar repeated."""
    return _splat(value, sizes)


def loaded(pointer: Value, mask: Value | None) -> Value:
    """Values read from memory: as constant as their addresses, otherwise unknown."""
    if not pointer.sizes:
        return scalar()
    masks = mask.axes if mask is not None and mask.sizes == pointer.sizes else None
    axes = (
        Axis(1, 1, math.gcd(axis.constancy, masks[d].constancy if masks else 0))
        for d, axis in enumerate(pointer.axes)
    )
    return Value(pointer.sizes, tuple(axes))


def expanded(value: Value, axis: int) -> Value:
    """``value[:, None]``: a new axis of size one."""
    if value.constant is not None:
        divisibility = _power_of_two_in(value.constant)
    else:
        divisibility = math.gcd(*(1 if a.contiguity > 1 else a.divisibility for a in value.axes))
    sizes = (*value.sizes[:axis], 1, *value.sizes[axis:])
    old = value.axes if value.sizes else ()
    return replace(value, sizes=sizes, axes=(*old[:axis], Axis(1, divisibility, 1, 0), *old[axis:]))


def hinted(value: Value, name: str, numbers: tuple[int, ...]) -> Value:
    """``tl.multiple_of``, ``tl.max_contiguous`` or ``tl.max_constancy``."""
    if len(numbers) == 1:
        numbers = numbers * len(value.axes)
    if len(numbers) != len(value.axes) or value.argument:
        return value
    field = {
        "multiple_of": "divisibility", "max_contiguous": "contiguity", "max_constancy": "constancy",
    }[name]  # fmt: skip
    axes = (replace(axis, **{field: n}) for axis, n in zip(value.axes, numbers, strict=True))
    return replace(value, axes=tuple(axes))


def join(left: Value, right: Value) -> Value | None:
    """What holds for either of two values of one shape; None if the shapes differ."""
    if left.sizes != right.sizes or left.element_bytes != right.element_bytes:
        return None
    axes = (_joined(a, b) for a, b in zip(left.axes, right.axes, strict=True))
    same = left.constant if left.constant == right.constant else None
    base = left.base if left.base == right.base else ""
    return Value(left.sizes, tuple(axes), same, left.element_bytes, base=base)


def select(condition: Value, left: Value, right: Value) -> Value | None:
    """``tl.where``."""
    pair = broadcast(left, right)
    both = None if pair is None else join(*pair)
    if both is None or not condition.sizes:
        return both
    shaped = broadcast(condition, both)
    if shaped is None or shaped[1].sizes != both.sizes:
        return None
    axes = (
        Axis(
            math.gcd(a.contiguity, c.constancy), a.divisibility, math.gcd(a.constancy, c.constancy)
        )
        for a, c in zip(both.axes, shaped[0].axes, strict=True)
    )
    return replace(both, axes=tuple(axes), constant=None)


def broadcast(left: Value, right: Value) -> tuple[Value, Value] | None:
    """Both operands in one shape; None if they have none."""
    while left.sizes and len(left.sizes) < len(right.sizes):
        left = expanded(left, 0)
    while right.sizes and len(right.sizes) < len(left.sizes):
        right = expanded(right, 0)
    if not left.sizes and not right.sizes:
        return left, right
    if not left.sizes or not right.sizes:
        return _splat(left, right.sizes), _splat(right, left.sizes)
    sizes = tuple(max(pair) for pair in zip(left.sizes, right.sizes, strict=True))
    grown = _grown(left, sizes), _grown(right, sizes)
    return None if grown[0] is None or grown[1] is None else (grown[0], grown[1])


def binary(operator: str, left: Value, right: Value) -> Value | None:
    """Result of ``+ - * // % << >> & | ^`` and of the comparisons ``< <= > >= == !=``.

    None for what is not understood.
    """
    pair = broadcast(left, right)
    rule = _RULES.get(operator)
    if pair is None or rule is None:
        return None
    left, right = pair
    if left.element_bytes and right.element_bytes:
        return None
    value = _folded(operator, left.constant, right.constant)
    pointer = left.element_bytes or right.element_bytes
    sizes = left.sizes
    if value is not None:
        axes = tuple(
            Axis(1, _power_of_two_in(value), max(a.constancy, b.constancy), 0)
            for a, b in zip(left.axes, right.axes, strict=True)
        )
        return Value(sizes, axes, value)
    left, right = _in_bytes(left, pointer), _in_bytes(right, pointer)
    axes = tuple(rule(_Operands(left, right, d)) for d in range(len(left.axes)))
    return Value(sizes, axes, None, pointer, base=left.base or right.base)


def extreme(left: Value, right: Value) -> Value | None:
    """``tl.minimum`` and ``tl.maximum`` of integers."""
    pair = broadcast(left, right)
    joined = None if pair is None else join(*pair)
    return None if joined is None else replace(joined, constant=None)


@dataclass(frozen=True, slots=True)
class _Operands:
    """Both operands along axis ``d``."""

    left_value: Value
    right_value: Value
    d: int

    @property
    def left(self) -> Axis:
        return self.left_value.axes[self.d]

    @property
    def right(self) -> Axis:
        return self.right_value.axes[self.d]

    @property
    def size(self) -> int:
        """0 for scalars, which neither count up nor repeat."""
        return self.left_value.sizes[self.d] if self.left_value.sizes else 0

    @property
    def constancy(self) -> int:
        return math.gcd(self.left.constancy, self.right.constancy)


def _add(o: _Operands) -> Axis:
    contiguity = max(
        math.gcd(o.left.constancy, o.right.contiguity),
        math.gcd(o.left.contiguity, o.right.constancy),
    )
    divisibility = math.gcd(o.left.divisibility, o.right.divisibility)
    return Axis(contiguity, divisibility, o.constancy, _sum(o.left.step, o.right.step, 1))


def _subtract(o: _Operands) -> Axis:
    contiguity = math.gcd(o.left.contiguity, o.right.constancy)
    divisibility = math.gcd(o.left.divisibility, o.right.divisibility)
    return Axis(contiguity, divisibility, o.constancy, _sum(o.left.step, o.right.step, -1))


def _sum(left: int | None, right: int | None, sign: int) -> int | None:
    return None if left is None or right is None else left + sign * right


def _multiply(o: _Operands) -> Axis:
    left_one, right_one = o.left_value.constant == 1, o.right_value.constant == 1
    contiguity = max(o.left.contiguity if right_one else 1, o.right.contiguity if left_one else 1)
    left = o.left.divisibility if o.left.contiguity == 1 or right_one else 1
    right = o.right.divisibility if o.right.contiguity == 1 or left_one else 1
    return Axis(contiguity, min(left * right, _ZERO), o.constancy, _product_step(o))


def _product_step(o: _Operands) -> int | None:
    """A scaled count steps by the scale, if that is a number."""
    if o.left.step == o.right.step == 0:
        return 0
    for axis, other in ((o.left, o.right_value), (o.right, o.left_value)):
        if axis.step is not None and other.constant is not None:
            return axis.step * other.constant
    return None


def _divide(o: _Operands) -> Axis:
    divisor = o.right_value.constant
    constancy = o.constancy
    if o.size and o.left.contiguity == o.size and o.right.constancy == o.size:
        shared = math.gcd(o.left.contiguity, o.left.divisibility, o.right.divisibility)
        constancy = max(constancy, shared)
    if divisor == 1:
        return Axis(o.left.contiguity, o.left.divisibility, constancy)
    divisibility = 1
    if divisor and divisor & (divisor - 1) == 0 and o.left.contiguity == 1:
        divisibility = max(1, o.left.divisibility // divisor)
    return Axis(1, divisibility, constancy)


def _remainder(o: _Operands) -> Axis:
    contiguity = 1
    if o.size and o.left.contiguity == o.size and o.right.constancy == o.size:
        contiguity = math.gcd(o.left.contiguity, o.left.divisibility, o.right.divisibility)
    known = math.gcd(o.left.divisibility, o.right.divisibility) if o.right.constancy > 1 else 1
    return Axis(contiguity, known, o.constancy)


def _shift_left(o: _Operands) -> Axis:
    shift = o.right_value.constant or 0
    left = 1 if o.left.contiguity > 1 and shift else o.left.divisibility
    contiguity = o.left.contiguity if o.right_value.constant == 0 else 1
    return Axis(contiguity, min(left << shift, _ZERO), o.constancy)


def _shift_right(o: _Operands) -> Axis:
    shift = o.right_value.constant
    if shift is None:
        return Axis(1, 1, o.constancy)
    left = 1 if o.left.contiguity > 1 and shift else o.left.divisibility
    contiguity = o.left.contiguity if shift == 0 else 1
    return Axis(contiguity, max(1, left >> shift), o.constancy)


def _bits(o: _Operands) -> Axis:
    return Axis(1, 1, o.constancy)


def _below(o: _Operands) -> Axis:
    """``left < right`` and ``left >= right`` with lanes on the left."""
    constancy = o.constancy
    if o.size and o.right.constancy == o.size:
        shared = math.gcd(o.left.contiguity, o.left.divisibility, o.right.divisibility)
        constancy = max(constancy, shared)
    return Axis(1, 1, constancy)


def _above(o: _Operands) -> Axis:
    """``left > right`` and ``left <= right`` with lanes on the right."""
    constancy = o.constancy
    if o.size and o.left.constancy == o.size:
        shared = math.gcd(o.right.contiguity, o.left.divisibility, o.right.divisibility)
        constancy = max(constancy, shared)
    return Axis(1, 1, constancy)


_RULES: dict[str, Callable[[_Operands], Axis]] = {
    "+": _add, "-": _subtract, "*": _multiply, "//": _divide, "%": _remainder, "<<": _shift_left,
    ">>": _shift_right, "&": _bits, "|": _bits, "^": _bits, "<": _below, ">=": _below,
    ">": _above, "<=": _above, "==": _bits, "!=": _bits,
}  # fmt: skip


def _folded(operator: str, left: int | None, right: int | None) -> int | None:
    if left is None or right is None or (operator in ("//", "%") and right == 0):
        return None
    if operator in ("<<", ">>") and not 0 <= right < 64:
        return None
    return int(_ARITHMETIC[operator](left, right))


_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b,
    "//": lambda a, b: _quotient(a, b), "%": lambda a, b: a - _quotient(a, b) * b,
    "<<": lambda a, b: a << b, ">>": lambda a, b: a >> b, "&": lambda a, b: a & b,
    "|": lambda a, b: a | b, "^": lambda a, b: a ^ b, "<": lambda a, b: a < b,
    ">=": lambda a, b: a >= b, ">": lambda a, b: a > b, "<=": lambda a, b: a <= b,
    "==": lambda a, b: a == b, "!=": lambda a, b: a != b,
}  # fmt: skip


def _quotient(left: int, right: int) -> int:
    """Rounded towards zero, as the machine divides."""
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _in_bytes(value: Value, pointer: int) -> Value:
    """An offset that is added to a pointer counts elements; its divisibility then is in bytes."""
    if not pointer or value.element_bytes:
        return value
    axes = (replace(a, divisibility=min(a.divisibility * pointer, _ZERO)) for a in value.axes)
    return replace(value, axes=tuple(axes))


def _splat(value: Value, sizes: tuple[int, ...]) -> Value:
    if value.sizes:
        return value
    axes = tuple(Axis(1, value.axes[0].divisibility, size, 0) for size in sizes)
    return replace(value, sizes=sizes, axes=axes, argument=False)


def _grown(value: Value, sizes: tuple[int, ...]) -> Value | None:
    axes: list[Axis] = []
    for axis, size, wanted in zip(value.axes, value.sizes, sizes, strict=True):
        if size not in (1, wanted):
            return None
        axes.append(axis if size == wanted else Axis(1, axis.divisibility, wanted, 0))
    return replace(value, sizes=sizes, axes=tuple(axes), argument=False)


def _joined(left: Axis, right: Axis) -> Axis:
    divisibility = math.gcd(left.divisibility, right.divisibility)
    if left.contiguity != right.contiguity:
        divisibility = math.gcd(divisibility, left.contiguity, right.contiguity)
    return Axis(
        math.gcd(left.contiguity, right.contiguity),
        divisibility,
        math.gcd(left.constancy, right.constancy),
        left.step if left.step == right.step else None,
    )


def _power_of_two_in(value: int) -> int:
    return _ZERO if value == 0 else min(value & -value, _ZERO)
