"""Read the text of a Triton module (TTIR, TTGIR) into operations.

Only what the text says plainly is read: names, results, operands, types, nesting and places. Rows
that are not understood are passed over, so that other versions of Triton do no harm.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from search_engine.worker.code_places import Place
from search_engine.worker.ir_places import Places

_LOOPS = ("scf.for", "scf.while")


@dataclass(eq=False, slots=True)
class IrOperation:
    """One operation; ``text`` is its row without the location."""

    name: str
    results: tuple[str, ...]
    text: str
    parent: IrOperation | None
    chain: tuple[Place, ...] = ()
    children: list[IrOperation] = field(default_factory=list["IrOperation"])

    @property
    def operands(self) -> tuple[str, ...]:
        """Values used, in order; what a region uses is not among them."""
        body = self.text.partition(" = ")[2] if self.results else self.text
        return tuple(_VALUE.findall(body))

    @property
    def types(self) -> str:
        """The type signature: what follows the last colon outside brackets."""
        return _after_colon(self.text)

    @property
    def loop_depth(self) -> int:
        """Loops around the operation."""
        return sum(above.name in _LOOPS for above in self.above)

    @property
    def above(self) -> Iterator[IrOperation]:
        """Enclosing operations, innermost first."""
        operation = self.parent
        while operation is not None:
            yield operation
            operation = operation.parent

    def inside(self, *, nested_loops: bool) -> Iterator[IrOperation]:
        """Operations in the regions, in order; with or without those of loops further inside."""
        for child in self.children:
            yield child
            if nested_loops or child.name not in _LOOPS:
                yield from child.inside(nested_loops=nested_loops)

    @property
    def is_loop(self) -> bool:
        """True for the loops of the source that were not unrolled."""
        return self.name in _LOOPS


def read_module(text: str) -> tuple[IrOperation, ...]:
    """Every operation of a module, in the order of the text."""
    places = Places(text)
    reader = _Reader(places)
    for row in text.split("\n"):
        reader.read(row)
    return tuple(reader.operations)


_OPERATION = re.compile(
    r'(?:(%[\w$.:, %#-]+?) = )?"?([A-Za-z_][\w$-]*(?:\.[\w$-]+)+)"?(?=[\s(<]|$)'
)
_VALUE = re.compile(r"%[\w$.-]+(?:#\d+)?")
_RESULT = re.compile(r"%[\w$.-]+")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_LOCATION = " loc("


class _Reader:
    """Keeps the stack of operations whose regions are open."""

    def __init__(self, places: Places) -> None:
        self.operations: list[IrOperation] = []
        self._places = places
        self._open: list[IrOperation] = []

    def read(self, row: str) -> None:
        row = row.strip()
        if not row or row.startswith(("#", "^", "//")):
            return
        plain = _STRING.sub('""', row)
        opened = plain.count("{") - plain.count("}")
        if plain.startswith("}"):
            self._close(row, opened)
        else:
            operation = self._operation(row)
            if opened > 0:
                self._open.append(operation)

    def _close(self, row: str, opened: int) -> None:
        """The end of a region: of its operation too, unless another region follows."""
        if opened >= 0 or not self._open:
            return
        operation = self._open.pop()
        text, chain = self._located(row)
        operation.chain = chain
        operation.text += " " + text[1:]

    def _operation(self, row: str) -> IrOperation:
        text, chain = self._located(row)
        match = _OPERATION.match(text)
        results = tuple(_RESULT.findall(match[1])) if match and match[1] else ()
        parent = self._open[-1] if self._open else None
        operation = IrOperation(match[2] if match else "", results, text, parent, chain)
        self.operations.append(operation)
        if parent is not None:
            parent.children.append(operation)
        return operation

    def _located(self, row: str) -> tuple[str, tuple[Place, ...]]:
        """The row without its own location, and that location; arguments have theirs too."""
        text, found, location = row.rpartition(_LOCATION)
        if not found or not location.endswith(")"):
            return row, ()
        return text, self._places.chain(location[:-1])


def _after_colon(text: str) -> str:
    depth = 0
    for index in range(len(text) - 1, 0, -1):
        sign = text[index]
        if sign in ")]}" or (sign == ">" and text[index - 1] != "-"):
            depth += 1
        elif sign in "([{<":
            depth -= 1
        elif sign == ":" and depth == 0 and text[index - 1] == " ":
            return text[index + 1 :].strip()
    return ""
