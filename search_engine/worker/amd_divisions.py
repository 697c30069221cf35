"""Integer divisions in AMD code, which has no instruction for them.

A 32-bit quotient is made from the floating-point reciprocal of the divisor, scaled to just below
2**32, converted to an integer and refined by one ``mul_hi`` and an addition; then follows one
``mul_hi`` for each dividend. A 64-bit quotient scales to just below 2**64. No other code uses the
constants of the scaling.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Sequence


class _Value(enum.Enum):
    """What a register holds on the way from divisor to quotient."""

    RECIPROCAL = "scaled floating-point reciprocal"
    APPROXIMATE = "integer reciprocal"
    ERROR = "error of the integer reciprocal"
    CORRECTION = "correction of the integer reciprocal"
    REFINED = "refined integer reciprocal"


_REGISTER = re.compile(r"\b[vs]\d+\b")
_SCALE = "0x4f7ffffe"
_LONG_SCALE = "0x5f7ffffc"
_STEPS = (
    (_Value.RECIPROCAL, re.compile(r"v_cvt_u32_f32"), _Value.APPROXIMATE),
    (_Value.APPROXIMATE, re.compile(r"[vs]_mul_(?:lo_u32|i32)"), _Value.ERROR),
    (_Value.ERROR, re.compile(r"[vs]_mul_hi_u32"), _Value.CORRECTION),
    (_Value.CORRECTION, re.compile(r"[vs]_add_"), _Value.REFINED),
)
_COPY = re.compile(r"v_mov_b32|s_mov_b32|v_readfirstlane_b32")
_QUOTIENT = re.compile(r"[vs]_mul_hi_u32|v_mad_u64_u32")


def divisions(instructions: Sequence[tuple[str, str]]) -> tuple[set[int], set[int]]:
    """``(quotients, long)``: indices of ``(name, operands)`` that stand for one division each, of
    32 and of 64 bits.

    A reciprocal whose quotients are not recognised is counted once itself. Beside a 64-bit
    division stands a short way for small values, which is a quotient too.
    """
    found: dict[int, int] = {}
    quotients: set[int] = set()
    long: set[int] = set()
    held: dict[str, tuple[_Value, int]] = {}
    for index, (name, operands) in enumerate(instructions):
        registers = _REGISTER.findall(operands)
        target, sources = registers[:1], registers[1:]
        values = [held[item] for item in sources if item in held]
        made = _made(name, values)
        if _SCALE in operands:
            found[index] = 0
            made = (_Value.RECIPROCAL, index)
        elif _LONG_SCALE in operands:
            long.add(index)
        elif _QUOTIENT.match(name) and (start := _refined(values)) is not None:
            quotients.add(index)
            found[start] += 1
        for register in target:
            held.pop(register, None)
            if made is not None:
                held[register] = made
    return quotients | {start for start, count in found.items() if not count}, long


def _made(name: str, values: list[tuple[_Value, int]]) -> tuple[_Value, int] | None:
    if values and _COPY.match(name):
        return values[0]
    for before, pattern, after in _STEPS:
        start = next((start for value, start in values if value is before), None)
        if start is not None and pattern.match(name):
            return after, start
    return None


def _refined(values: list[tuple[_Value, int]]) -> int | None:
    return next((start for value, start in values if value is _Value.REFINED), None)
