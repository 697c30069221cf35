"""Bank conflicts of shared memory, worked out from the PTX text.

Addresses of shared memory depend on the thread's number alone, but for a part that is the same for
all lanes (a stage of a pipeline). So the integer instructions that lead to an address are run for
the 32 lanes of the first warp, and the words that they ask for are counted by bank. What depends on
memory or parameters in another way is unknown, and the access is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from search_engine.domain.code import SharedAccess

_LANES = 32
_BANKS = 32
_WORD = 4
_MASK = 0xFFFFFFFF
_MOST_ROWS = 60_000
"""Longer texts would take seconds."""

_INSTRUCTION = re.compile(r"^\s*(?:@(!?)(%p\d+)\s+)?([a-z][\w.]*)\s+(.*?);")
_SHARED = re.compile(r"^(ld|st|ldmatrix|stmatrix)\..*\bshared\b")
_ADDRESS = re.compile(r"\[\s*(%\w+|\w+)\s*(?:\+\s*(-?\d+)\s*)?\]")
_REGISTER = re.compile(r"%\w+(?:\.[xyz])?")
_LABEL = re.compile(r"^(\$?\w+):")
_BRANCH = re.compile(r"\bbra(?:\.uni)?\s+(\$?\w+);")
_LEAST_LOOP = 8
"""Rows; shorter loops wait for a barrier."""


@dataclass(frozen=True, slots=True)
class _Lanes:
    """A value for each lane; ``shifted``: up to an unknown number that all lanes share."""

    numbers: tuple[int, ...]
    shifted: bool = False


_ANY = _Lanes((0,) * _LANES, shifted=True)
"""The same for all lanes, not known."""
_SPECIAL = {
    "%tid.x": _Lanes(tuple(range(_LANES))), "%laneid": _Lanes(tuple(range(_LANES))),
    "%ctaid.x": _ANY, "%ctaid.y": _ANY, "%ctaid.z": _ANY,
}  # fmt: skip


def shared_accesses(ptx: str, lines: Sequence[int | None]) -> tuple[SharedAccess, ...]:
    """Shared accesses by line; ``lines[i]`` is the user's line of row ``i`` of the text."""
    rows = ptx.splitlines()
    if len(rows) > _MOST_ROWS:
        return ()
    parsed = [_INSTRUCTION.match(row) for row in rows]
    wanted = _wanted(parsed)
    depths = _depths(rows)
    known: dict[str, _Lanes] = {}
    totals: dict[tuple[int | None, int, bool, int], list[int]] = {}
    for index, found in enumerate(parsed):
        if found is None:
            continue
        operation, operands = found[3], found[4]
        if _SHARED.match(operation):
            cycles = _cycles(operation, operands, _active(found, known), known)
            if cycles is not None:
                line = lines[index] if index < len(lines) else None
                store, width = operation.startswith("st"), _width(operation)
                total = totals.setdefault((line, depths[index], store, width), [0, 0, 0])
                for position, more in enumerate((1, *cycles)):
                    total[position] += more
        else:
            _run(operation, operands, wanted, known)
    return tuple(
        SharedAccess(line, depth, store, width, *total)
        for (line, depth, store, width), total in totals.items()
    )


def _wanted(parsed: Sequence[re.Match[str] | None]) -> frozenset[str]:
    """Registers that addresses of shared memory, and their predicates, are computed from."""
    wanted: set[str] = set()
    for found in reversed(parsed):
        if found is None:
            continue
        if _SHARED.match(found[3]):
            address = _ADDRESS.search(found[4])
            wanted |= {address[1]} if address else set()
            wanted |= {found[2]} if found[2] else set()
        elif (parts := _REGISTER.findall(found[4])) and parts[0] in wanted:
            wanted |= set(parts[1:])
    return frozenset(wanted)


def _depths(rows: Sequence[str]) -> list[int]:
    """Number of loops around each row: ranges that end in a branch backwards."""
    labels = {found[1]: index for index, row in enumerate(rows) if (found := _LABEL.match(row))}
    depths = [0] * len(rows)
    heads: dict[int, int] = {}
    for index, row in enumerate(rows):
        for target in _BRANCH.findall(row):
            start = labels.get(target, index)
            if start + _LEAST_LOOP <= index:
                heads[start] = max(index, heads.get(start, 0))
    for start, end in heads.items():
        for index in range(start, end + 1):
            depths[index] += 1
    return depths


def _active(found: re.Match[str], known: dict[str, _Lanes]) -> tuple[bool, ...] | None:
    """Which lanes take part; None if that is not known."""
    if not found[2]:
        return (True,) * _LANES
    predicate = known.get(found[2])
    if predicate is None or predicate.shifted:
        return None
    return tuple(bool(number) != bool(found[1]) for number in predicate.numbers)


def _cycles(
    operation: str, operands: str, active: tuple[bool, ...] | None, known: dict[str, _Lanes]
) -> tuple[int, int] | None:
    """Cycles of one instruction, and the fewest possible; None if its address is not known."""
    address = _ADDRESS.search(operands)
    start = _operand(address[1], known) if address else None
    if address is None or start is None or active is None:
        return None
    at = [number + int(address[2] or 0) for number in start.numbers]
    width = max(_WORD, _width(operation))
    taken = least = 0
    for lanes in _phases(operation, width):
        words = {
            (at[lane] + offset) // _WORD
            for lane in lanes
            if active[lane]
            for offset in range(0, width, _WORD)
        }
        banks = [word % _BANKS for word in words]
        taken += max((banks.count(bank) for bank in set(banks)), default=0)
        least += -(-len(words) // _BANKS)
    return taken, least


def _phases(operation: str, width: int) -> Iterable[range]:
    """Lanes that are served together: at most 128 bytes' worth, rows of a matrix load by eight."""
    if "matrix" in operation:
        count = re.search(r"\.x(\d)", operation)
        return [range(8 * i, 8 * i + 8) for i in range(int(count[1]) if count else 1)]
    together = min(_LANES, _LANES * _WORD // width)
    return [range(first, first + together) for first in range(0, _LANES, together)]


def _width(operation: str) -> int:
    """Bytes a lane; rows of a matrix load have 16."""
    if "matrix" in operation:
        return 16
    count = re.search(r"\.v(\d)", operation)
    bits = re.search(r"\.[bfsu](\d+)$", operation)
    return (int(count[1]) if count else 1) * (int(bits[1]) if bits else 32) // 8


def _run(operation: str, operands: str, wanted: frozenset[str], known: dict[str, _Lanes]) -> None:
    target, _, rest = operands.partition(",")
    target = target.strip()
    if target not in wanted:
        return
    result = None
    if operation.startswith("ld.param"):
        result = _ANY
    else:
        values = [_operand(part.strip(), known) for part in rest.split(",")]
        if all(value is not None for value in values):
            result = _computed(operation.split("."), [v for v in values if v is not None])
    if result is None:
        known.pop(target, None)
    else:
        known[target] = result


def _operand(text: str, known: dict[str, _Lanes]) -> _Lanes | None:
    if re.fullmatch(r"-?\d+", text):
        return _Lanes((int(text) & _MASK,) * _LANES)
    if text in _SPECIAL:
        return _SPECIAL[text]
    if not text.startswith("%"):
        return _Lanes((0,) * _LANES)  # a symbol: the start of shared memory
    return known.get(text)


def _computed(operation: list[str], values: list[_Lanes]) -> _Lanes | None:
    name, shifted = operation[0], any(value.shifted for value in values)
    if name in ("mov", "cvt", "cvta") and len(values) == 1:
        return values[0]
    if name == "selp" and len(values) == 3 and not values[2].shifted:
        return _each(lambda a, b, p: a if p else b, values, shifted=shifted)
    if name == "not" and len(values) == 1 and not shifted:
        predicate = "pred" in operation
        return _each(lambda a: not a if predicate else ~a, values, shifted=False)
    if name == "mad" and len(values) == 3:
        product = _computed(["mul", *operation[1:]], values[:2])
        return _computed(["add"], [product, values[2]]) if product is not None else None
    if name == "bfe" and len(values) == 3 and not shifted:
        return _each(lambda a, at, size: a >> at & ((1 << size) - 1), values, shifted=False)
    rule = _COMPARISONS.get(operation[1]) if name == "setp" else _BINARY.get(name)
    if rule is None or len(values) != 2 or (name == "mul" and "hi" in operation):
        return None
    return _each(rule, values, shifted=shifted) if _keeps(name, *values) else None


def _keeps(name: str, left: _Lanes, right: _Lanes) -> bool:
    """True if differences between lanes stay known although a shared part is not."""
    if not (left.shifted or right.shifted) or name in ("add", "sub"):
        return True
    if name == "shl":
        return not right.shifted and _uniform(right)
    if name != "mul":
        return False
    other = right if left.shifted else left
    return not other.shifted and _uniform(other)


def _uniform(value: _Lanes) -> bool:
    return len(set(value.numbers)) == 1


def _each(rule: Callable[..., int], values: list[_Lanes], *, shifted: bool) -> _Lanes:
    columns = zip(*(value.numbers for value in values), strict=True)
    return _Lanes(tuple(int(rule(*column)) & _MASK for column in columns), shifted)


_BINARY: dict[str, Callable[..., int]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
    "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b,
    "shl": lambda a, b: a << b if b < 32 else 0, "shr": lambda a, b: a >> b, "min": min,
    "max": max,
}  # fmt: skip
_COMPARISONS: dict[str, Callable[..., int]] = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
}  # fmt: skip
