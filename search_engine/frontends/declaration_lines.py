"""Finds ``kernel-lsp:`` comment lines, joins continued ones, keeps where each byte came from."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from search_engine.domain.workload import WorkloadProblem

_MARK = re.compile(rb"^[ \t]*(?:#|//)[ \t]*kernel-lsp:[ \t]*", re.M)
_LEADER = re.compile(rb"[ \t]*(?:#|//)[ \t]*")
_WORD = re.compile(r"[A-Za-z][\w-]*")
_OPEN = {"(": ")", "[": "]", "{": "}"}


class DeclarationError(Exception):
    """A mistake in a declaration: where in the line, which code, and the remedy."""

    def __init__(self, offset: int, length: int, message: str, code: str = "KL801") -> None:
        super().__init__(message)
        self.offset = offset
        self.length = length
        self.message = message
        self.code = code


@dataclass(frozen=True, slots=True)
class Segment:
    """Part of a declaration: its text from character ``offset`` stands at byte ``start``."""

    offset: int
    start: int
    line: int
    column: int
    """0-based character column of the segment in its line."""


@dataclass(frozen=True, slots=True)
class Declaration:
    """One logical line ``kernel-lsp: keyword text``, continuation lines joined by a blank."""

    keyword: str
    text: str
    text_offset: int
    """Characters from the beginning of ``full`` to ``text``."""
    full: str
    segments: tuple[Segment, ...]
    first_line: int
    last_line: int

    def problem(self, error: DeclarationError) -> WorkloadProblem:
        """The error with its place in the file; the message begins with the 1-based column."""
        offset = min(error.offset, len(self.full))
        segment = max(
            (item for item in self.segments if item.offset <= offset), key=lambda s: s.offset
        )
        inside = self.full[segment.offset : offset]
        start = segment.start + len(inside.encode())
        length = len(self.full[offset : offset + max(error.length, 1)].encode())
        end = start + length
        if not length:  # something is missing at the end: mark the last character
            start -= len((inside or " ")[-1].encode())
        column = segment.column + len(inside) + 1
        message = f"column {column}: {error.message}"
        return WorkloadProblem(start, end, segment.line, error.code, message)


@dataclass(frozen=True, slots=True)
class Item:
    """A word of a declaration with its offset in ``Declaration.full``."""

    text: str
    offset: int


@dataclass(slots=True)
class _Joined:
    parts: list[str] = field(default_factory=list[str])
    segments: list[Segment] = field(default_factory=list[Segment])
    length: int = 0

    def add(self, text: str, start: int, line: int, column: int) -> None:
        self.segments.append(Segment(self.length, start, line, column))
        self.parts.append(text + " ")
        self.length += len(text) + 1


def declarations(data: bytes, strings: tuple[tuple[int, int], ...]) -> Iterator[Declaration]:
    """All declarations of a file in order; those inside the byte ranges ``strings`` do not count.

    ``ignore`` comments belong to diagnostics and are skipped.
    """
    for match in _MARK.finditer(data):
        if any(start <= match.start() < end for start, end in strings):
            continue
        declaration = _declaration(data, match.start(), match.end())
        if not declaration.keyword.startswith("ignore"):
            yield declaration


def split_items(text: str, offset: int) -> list[Item]:
    """Split at blanks outside brackets and quotes. Raises DeclarationError for an open bracket.

    ``<`` opens only directly after ``=``, as in ``template=<float, 4>``.
    """
    items: list[Item] = []
    closers: list[tuple[str, int]] = []
    begin, quote = -1, ""
    for index, sign in enumerate(text):
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "\"'":
            quote = sign
        elif sign in _OPEN or (sign == "<" and text[index - 1 : index] == "="):
            closers.append((_OPEN.get(sign, ">"), index))
        elif closers and sign == closers[-1][0]:
            closers.pop()
        if sign.isspace() and not closers and not quote:
            if begin >= 0:
                items.append(Item(text[begin:index], offset + begin))
            begin = -1
        elif begin < 0:
            begin = index
    if closers:
        closer, index = closers[-1]
        raise DeclarationError(offset + index, 1, f"expected `{closer}` to close `{text[index]}`")
    if quote:
        raise DeclarationError(offset + begin, len(text) - begin, f"expected a closing {quote}")
    if begin >= 0:
        items.append(Item(text[begin:], offset + begin))
    return items


def _declaration(data: bytes, start: int, inner: int) -> Declaration:
    first = line = data.count(b"\n", 0, start)
    joined = _Joined()
    line_start = start
    while True:
        end = data.find(b"\n", inner)
        end = len(data) if end < 0 else end
        text = data[inner:end].decode(errors="replace").rstrip()
        column = len(data[line_start:inner].decode(errors="replace"))
        continued = text.endswith("\\")
        joined.add(text[:-1].rstrip() if continued else text, inner, line, column)
        leader = _LEADER.match(data, end + 1) if continued and end < len(data) else None
        if leader is None:
            break
        line, line_start, inner = line + 1, end + 1, leader.end()
    full = _without_comment("".join(joined.parts)).rstrip()
    word = _WORD.match(full)
    keyword = word.group() if word else ""
    text_offset = len(keyword)
    while text_offset < len(full) and full[text_offset].isspace():
        text_offset += 1
    return Declaration(
        keyword, full[text_offset:], text_offset, full, tuple(joined.segments), first, line
    )


def _without_comment(text: str) -> str:
    """The text up to a ``#`` after a blank and outside quotes."""
    quote = ""
    for index, sign in enumerate(text):
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "\"'":
            quote = sign
        elif sign == "#" and (index == 0 or text[index - 1].isspace()):
            return text[:index]
    return text
