"""Line numbers that survive moving a unit in its file, its comments and its formatting.

A unit hash says nothing about positions, so facts that are kept under it must not either. Kept
facts number a line by the part of the unit that it belongs to (kernel, helper, sibling, entry) and
by how many words of that part's code stand before it. Words are names, keywords and numbers: what
a formatter moves between lines but never adds or removes.
"""

from __future__ import annotations

import bisect
import dataclasses
import functools
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from search_engine.domain.kernel import Module, Span, Unit

Facts = TypeVar("Facts")
Move = Callable[[str, int], int | None]
"""Field name and line to the line it becomes; None if there is none."""

_TOKEN = re.compile(
    rb"""\#[^\n]*|
    [rRbBuUfFtT]{0,2}(?:\"{3}(?:[^\\]|\\.)*?\"{3}|'{3}(?:[^\\]|\\.)*?'{3}
        |"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|
    ([A-Za-z_\x80-\xff][\w\x80-\xff]*
        |0[xXoObB]\w+|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][-+]?\d[\d_]*)?\w*)""",
    re.S | re.X,
)
"""Comments and strings, which do not count, and words, which do."""
_STEP = 1 << 20
"""Kept lines are ``part * _STEP + word``; no function has a million words."""
_LINE_FIELDS = frozenset({"line", "end_line"})


class LineError(ValueError):
    """A line outside the unit, or a unit with other words than the facts were kept for."""


@dataclass(frozen=True, slots=True)
class PartWords:
    """How many words a part of a unit has; both versions of a unit must agree on it."""

    name: str
    words: int


class LineMap:
    """Lines of one unit in one text, to kept lines and back."""

    def __init__(self, module: Module, unit: Unit) -> None:
        data, self._newlines = _encoded(module.text)
        self._parts = [(name, span, self._words(data, span)) for name, span in _parts(unit)]

    @property
    def signature(self) -> tuple[PartWords, ...]:
        """What must be equal where kept facts are read again."""
        return tuple(PartWords(name, len(words)) for name, _, words in self._parts)

    def keep(self, facts: Facts) -> Facts:
        """The facts with kept lines. Raises LineError if one that must be known is outside."""
        return move_lines(facts, self._kept)

    def restore(self, facts: Facts) -> Facts:
        """Kept facts with the lines of this text. Raises LineError if they do not fit."""
        return move_lines(facts, self._restored)

    def _words(self, data: bytes, span: Span) -> list[int]:
        """The line of every word of a span."""
        return [
            bisect.bisect_left(self._newlines, match.start(1))
            for match in _TOKEN.finditer(data, span.start, span.end)
            if match.start(1) >= 0
        ]

    def _kept(self, field: str, line: int) -> int | None:
        for index, (_, span, words) in enumerate(self._parts):
            if span.line <= line <= span.end_line and words:
                if field == "end_line":  # the last word of the line, so that a range keeps its end
                    word = max(0, bisect.bisect_right(words, line) - 1)
                else:
                    word = min(len(words) - 1, bisect.bisect_left(words, line))
                return index * _STEP + word
        return None

    def _restored(self, _field: str, line: int) -> int:
        part, word = divmod(line, _STEP)
        if part >= len(self._parts) or word >= len(self._parts[part][2]):
            raise LineError(f"kept line {line} is not in this unit")
        return self._parts[part][2][word]


@functools.lru_cache(4)
def _encoded(text: str) -> tuple[bytes, list[int]]:
    """The bytes of a text and where its lines end; the same for all units of a file."""
    data = text.encode(errors="surrogatepass")
    return data, [match.start() for match in re.finditer(rb"\n", data)]


def move_lines(value: Facts, move: Move) -> Facts:
    """A copy of a domain value in which every ``line`` and ``end_line`` is moved.

    A line that becomes None is None where the field allows it. Raises LineError elsewhere.
    """
    if isinstance(value, tuple):
        items = cast("tuple[Any, ...]", value)
        return cast("Facts", tuple(move_lines(item, move) for item in items))
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return value
    changes: dict[str, Any] = {}
    for field in dataclasses.fields(value):
        old = getattr(value, field.name)
        if field.name in _LINE_FIELDS and isinstance(old, int):
            changes[field.name] = _moved(field, old, move)
        elif isinstance(old, tuple) or dataclasses.is_dataclass(old):
            changes[field.name] = move_lines(cast("Any", old), move)
    return cast("Facts", dataclasses.replace(value, **changes)) if changes else value


def _moved(field: dataclasses.Field[Any], line: int, move: Move) -> int | None:
    moved = move(field.name, line)
    if moved is None and "None" not in str(field.type):
        raise LineError(f"line {line + 1} is outside the unit")
    return moved


def _parts(unit: Unit) -> Iterable[tuple[str, Span]]:
    """The parts by name, so that their order in the file does not count."""
    kernels = {f"{k.qualified_name}#{k.ordinal}": k.span for k in (unit.kernel, *unit.helpers)}
    kernels.update((f"{k.qualified_name}#{k.ordinal}", k.span) for k in unit.siblings)
    if unit.entry is not None:
        kernels[f"{unit.entry.qualified_name} (entry)"] = unit.entry.span
    return sorted(kernels.items())
