"""Comments that hide findings: ``# kernel-lsp: ignore`` or ``# kernel-lsp: ignore[KL105, name]``.

A comment hides what stands on its line or, on a line of its own, on the statement below. On the
line of a ``def``, or directly above it or its decorators, it counts for the whole function; above
everything else in the file, for the file.
"""

from __future__ import annotations

import bisect
import re
from dataclasses import dataclass

from search_engine.domain.finding import Finding
from search_engine.domain.kernel import Module, Span
from search_engine.frontends.triton_pieces import multiline_strings

_COMMENT = re.compile(rb"#[ \t]*kernel-lsp:[ \t]*ignore\b(?:[ \t]*\[(?P<names>[^\]\n]*)\])?[^\n]*")
_TOKEN = re.compile(
    rb"#[^\n]*"
    rb'|"""(?:[^"\\]|\\.|"(?!""))*"""'
    rb"|'''(?:[^'\\]|\\.|'(?!''))*'''"
    rb'|"(?:[^"\\\n]|\\.)*"'
    rb"|'(?:[^'\\\n]|\\.)*'"
    rb"|\\\r?\n|\n|\w+|[^\s\w]",
    re.S,
)
_HASH = 0x23
_TOP_LEVEL = (b"def", b"class", b"async", b"@")


@dataclass(frozen=True, slots=True)
class Ignored:
    """One comment. ``names`` are codes and names; None for every finding."""

    first: int
    last: int
    """Lines that it covers, 0-based."""
    names: frozenset[str] | None
    kernel: str | None = None
    """Qualified name of the kernel all of whose findings are hidden, wherever they stand."""

    def hides(self, finding: Finding) -> bool:
        """True if the comment is about this finding."""
        if self.names is not None and not self.names & {finding.code, finding.name}:
            return False
        inside = self.first <= finding.line <= self.last
        return inside or (self.kernel is not None and self.kernel == finding.kernel)


def ignore_comments(module: Module) -> tuple[Ignored, ...]:
    """Every ignore comment of a file, in order."""
    data = module.text.encode(errors="surrogatepass")
    if _COMMENT.search(data) is None:
        return ()
    strings = multiline_strings(data)
    text = _Text(data.split(b"\n"), statements(data))
    found: list[Ignored] = []
    for match in _COMMENT.finditer(data):
        if not any(start <= match.start() < end for start, end in strings):
            line = data.count(b"\n", 0, match.start())
            found.append(_covered(module, text, line, _names(match["names"])))
    return tuple(found)


def statements(data: bytes) -> tuple[tuple[int, int], ...]:
    """First and last line of every logical line: brackets, strings and backslashes go on.

    A definition in the first column begins anew, so that an open bracket costs one function only.
    """
    found: list[tuple[int, int]] = []
    line = depth = 0
    first: int | None = None
    for match in _TOKEN.finditer(data):
        token = match.group()
        if token in _TOP_LEVEL and data[match.start() - 1 : match.start()] in (b"", b"\n"):
            if first is not None:
                found.append((first, line - 1))
            first, depth = line, 0
        elif token == b"\n":
            if first is not None and depth <= 0:
                found.append((first, line))
                first = None
        elif token[0] != _HASH:
            first = line if first is None else first
            depth += (token in (b"(", b"[", b"{")) - (token in (b")", b"]", b"}"))
        line += token.count(b"\n")
    if first is not None:
        found.append((first, line))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Text:
    """The lines of a file and where its logical lines stand."""

    lines: list[bytes]
    statements: tuple[tuple[int, int], ...]

    def statement(self, line: int) -> tuple[int, int]:
        """The logical line that holds ``line``."""
        index = bisect.bisect_right(self.statements, (line, len(self.lines))) - 1
        if index >= 0 and self.statements[index][1] >= line:
            return self.statements[index]
        return line, line

    def below(self, line: int) -> int:
        """The first line of the next logical line."""
        index = bisect.bisect_left(self.statements, (line, 0))
        return self.statements[index][0] if index < len(self.statements) else line

    @property
    def first_code(self) -> int:
        """Where the code begins, behind a docstring."""
        for first, _ in self.statements:
            text = self.lines[first].strip().removeprefix(b"\xef\xbb\xbf")
            if not text.lstrip(b"rRuU").startswith((b'"', b"'")):
                return first
        return len(self.lines)


def _names(names: bytes | None) -> frozenset[str] | None:
    if names is None:
        return None
    return frozenset(item.strip() for item in names.decode(errors="replace").split(",")) - {""}


def _covered(module: Module, text: _Text, line: int, names: frozenset[str] | None) -> Ignored:
    alone = text.lines[line].lstrip().startswith(b"#")
    if alone and line < text.first_code:
        return Ignored(0, len(text.lines), names)
    first, last = text.statement(text.below(line) if alone else line)
    for kernel in module.kernels:
        if _is_header(text, kernel.span, first):
            name = kernel.qualified_name
            return Ignored(kernel.span.line, kernel.span.end_line, names, name)
    for entry in module.entries:
        if _is_header(text, entry.span, first):
            return Ignored(entry.span.line, entry.span.end_line, names)
    return Ignored(first, last, names)


def _is_header(text: _Text, span: Span, first: int) -> bool:
    """True if a logical line of a function begins on ``first``: a decorator or its ``def``."""
    line = span.line
    while line < first and text.lines[line].lstrip().startswith(b"@"):
        line = text.below(text.statement(line)[1] + 1)
    return line == first
