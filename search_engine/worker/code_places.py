"""Which line of the user's text a place in compiled code belongs to.

The compiler's texts (PTX, amdgcn) say in ``.loc`` directives where an instruction comes from, and
behind each, as a comment, the chain of calls it was inlined through, innermost first:
``.loc 2 293 36  // standard.py:293:36 @[ kernels.py:18:51 ]``. The first link that lies in the
user's text is the line: a helper's own statement, and the call of a library function.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePath
from typing import TypeAlias

from search_engine.domain.job import Source
from search_engine.worker.loader import scratch_file

Place: TypeAlias = tuple[str, int]
"""File and 1-based line; line 0 stands for code that the compiler made."""


@dataclass(frozen=True, slots=True)
class UserText:
    """The version's text under every name that debug information may give it.

    A kernel from Triton's cache may have been compiled from another version whose kernels stand on
    the same lines, so any scratch file of that name is meant.
    """

    scratch: str
    path: str

    def line(self, chain: Iterable[Place]) -> int | None:
        """0-based line of the innermost link in the text; None if there is none."""
        return next((line - 1 for file, line in chain if line > 0 and self.holds(file)), None)

    def holds(self, file: str) -> bool:
        """True if ``file`` is the version's text."""
        if file in (self.scratch, self.path):
            return True
        own, other = PurePath(self.scratch), PurePath(file)
        return other.name == own.name and other.parent.parent.name == own.parent.parent.name


def user_text(source: Source) -> UserText:
    """The names of a version's text."""
    return UserText(str(scratch_file(source)), source.path)


def located_rows(text: str, user: UserText) -> list[int | None]:
    """For each row of PTX or amdgcn text, the user's line in force there.

    Inside inline assembly some versions of LLVM count the rows of the assembly as if they were
    rows of the source: there the line stays what it was before.
    """
    files = _files(text)
    unambiguous = _user_names(files, user)
    lines: list[int | None] = []
    current: int | None = None
    inline = False
    for row in text.split("\n"):
        if _INLINE_START.match(row) or _INLINE_END.match(row):
            inline = _INLINE_START.match(row) is not None
        elif not inline and (match := _LOC.match(row)):
            current = user.line(_chain(match, files, unambiguous))
        elif _FUNCTION_END.match(row):
            current = None
        lines.append(current)
    return lines


_LOC = re.compile(r"\s*\.loc\s+(\d+)\s+(\d+)\s+\d+([^/;\n]*)(.*)")
_INLINE_START = re.compile(r"\s*(?:// begin inline asm|;+#ASMSTART)")
_INLINE_END = re.compile(r"\s*(?:// end inline asm|;+#ASMEND)")
_FUNCTION_END = re.compile(r"\s*// -- End function|\.Lfunc_end\d+:")
_FILE = re.compile(r'\s*\.file\s+(\d+)\s+"([^"]*)"(?:\s+"([^"]*)")?')
_LINK = re.compile(r"@\[ (.*?):(\d+):\d+")
_INLINED_AT = re.compile(r"inlined_at (\d+) (\d+) \d+")


def _files(text: str) -> dict[int, str]:
    files: dict[int, str] = {}
    for row in text.split("\n"):
        if match := _FILE.match(row):
            number, first, second = match.groups()
            files[int(number)] = first if second is None else str(PurePath(first) / second)
    return files


def _user_names(files: dict[int, str], user: UserText) -> dict[str, str]:
    """Base names, as the comments give them, that can only mean the user's text."""
    names: dict[str, str] = {}
    for file in files.values():
        if user.holds(file):
            names[PurePath(file).name] = file
    others = {PurePath(file).name for file in files.values() if not user.holds(file)}
    return {name: file for name, file in names.items() if name not in others}


def _chain(match: re.Match[str], files: dict[int, str], names: dict[str, str]) -> list[Place]:
    number, line, options, comment = match.groups()
    chain = [(files.get(int(number), ""), int(line))]
    links = _LINK.findall(comment)
    if links:
        chain.extend((names.get(name, ""), int(outer)) for name, outer in links)
    elif outer := _INLINED_AT.search(options):
        chain.append((files.get(int(outer[1]), ""), int(outer[2])))
    return chain
