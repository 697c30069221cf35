"""Lines and columns as the protocol counts them.

The protocol knows three line ends (``\\n``, ``\\r\\n``, ``\\r``) and counts columns in units of
UTF-8, UTF-16 or UTF-32. Python's ``str.splitlines`` also breaks at form feeds and other signs, so
a file with a form feed would be read one line off; this module splits as the protocol does.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)")
_SURROGATE = re.compile("[\ud800-\udfff]")


class Encoding(enum.Enum):
    """Unit of a column."""

    UTF8 = "utf-8"
    UTF16 = "utf-16"
    UTF32 = "utf-32"


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """0-based line and column in the negotiated encoding."""

    line: int
    character: int


@dataclass(frozen=True, slots=True)
class Range:
    """Half-open range between two positions."""

    start: Position
    end: Position


def split_lines(text: str) -> list[str]:
    """Lines with their ends; the last one has none and may be empty."""
    lines = _LINE.findall(text)
    consumed = sum(map(len, lines))
    lines.append(text[consumed:])
    return lines


def clean(text: str) -> str:
    """Replace lone surrogates, which no encoding can carry, by a sign of the same UTF-16 width."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def body(line: str) -> str:
    """The line without its end."""
    return line.rstrip("\r\n")


def units(text: str, encoding: Encoding) -> int:
    """Length of ``text`` in units of the encoding."""
    if text.isascii() or encoding is Encoding.UTF32:
        return len(text)
    if encoding is Encoding.UTF8:
        return len(text.encode())
    return len(text) + sum(sign > "\uffff" for sign in text)


def index_at(line: str, character: int, encoding: Encoding) -> int:
    """Code point index of a column; past the end is the end, inside a sign is before it."""
    content = body(line)
    if content.isascii() or encoding is Encoding.UTF32:
        return max(0, min(character, len(content)))
    seen = 0
    for index, sign in enumerate(content):
        seen += units(sign, encoding)
        if seen > character:
            return index
    return len(content)
