"""Tensor types in the text of Triton modules."""

from __future__ import annotations

import re
from dataclasses import dataclass

_SHAPED = re.compile(r"(?:tensor|memdesc)<((?:\d+x)+)")
_ELEMENT = re.compile(r"[A-Za-z_!][\w.]*(?:<[^<>]*>)?")
_BITS = re.compile(r"(\d+)")
_POINTER_BYTES = 8


@dataclass(frozen=True, slots=True)
class ShapedType:
    """A tensor or a buffer: ``element`` as MLIR writes it, ``encoding`` as text, or a name."""

    shape: tuple[int, ...]
    element: str
    encoding: str

    @property
    def bytes(self) -> int:
        """Size of all elements."""
        count = 1
        for size in self.shape:
            count *= size
        return count * element_bytes(self.element)

    @property
    def element_name(self) -> str:
        """Triton's name of the element type: ``bf16``, ``f8e4m3``."""
        return self.element.lower().removesuffix("fn")


def shaped_types(text: str) -> list[ShapedType]:
    """Every tensor or buffer type in a signature, in order."""
    found: list[ShapedType] = []
    for match in _SHAPED.finditer(text):
        shape = tuple(int(size) for size in match[1].split("x") if size)
        element = _ELEMENT.match(text, match.end())
        if element is not None:
            found.append(ShapedType(shape, element[0], _rest(text, element.end())))
    return found


def element_bytes(element: str) -> int:
    """Bytes of one element; truth values take one."""
    if "ptr" in element:
        return _POINTER_BYTES
    bits = _BITS.search(element)
    return max(1, int(bits[1]) // 8) if bits else _POINTER_BYTES


def _rest(text: str, start: int) -> str:
    """What stands between the element type and the bracket that closes the type."""
    depth = 0
    for index in range(start, len(text)):
        sign = text[index]
        if sign in "<({[":
            depth += 1
        elif sign in ">)}]" and text[index - 1] != "-":
            if depth == 0:
                return text[start:index].lstrip(", ")
            depth -= 1
    return text[start:].lstrip(", ")
