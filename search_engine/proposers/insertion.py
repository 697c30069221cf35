"""Where a new launch option or a new local constant goes in the text."""

from __future__ import annotations

import ast
import io
import tokenize

from search_engine.proposers.tunable_types import Place
from search_engine.rules._base import Patch

_LAYOUT = (tokenize.NL, tokenize.NEWLINE, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT)


def option_place(patch: Patch, text: str, call: ast.Call, option: str) -> Place:
    """Behind the last argument of a call, whatever commas, brackets and comments stand there."""
    start, end = patch.span(call)
    source = text.encode()[start:end].decode()
    token = _last_before_bracket(source)
    position = start + _byte_offset(source, token.end)
    if token.string == "(":
        return Place(position, position, f"{option}={{}}, ")
    if token.string == ",":
        return Place(position, position, f" {option}={{}},")
    return Place(position, position, f", {option}={{}}")


def local_place(patch: Patch, entry: ast.FunctionDef, name: str) -> Place | None:
    """A new first statement of the entry, behind its docstring; None if it declares ``global``."""
    if any(isinstance(node, ast.Global) and name in node.names for node in ast.walk(entry)):
        return None
    body = entry.body
    has_docstring = len(body) > 1 and ast.get_docstring(entry, clean=False) is not None
    first = body[1] if has_docstring else body[0]
    if first.lineno == entry.lineno or isinstance(first, ast.FunctionDef):
        return None
    start, _ = patch.span(first)
    return Place(start, start, f"{name} = {{}}\n" + " " * first.col_offset)


def last_setting(
    patch: Patch, entry: ast.FunctionDef, name: str, calls: list[ast.Call]
) -> ast.stmt | None:
    """The last statement of the entry's body that sets a local; None if a launch comes before."""
    setting = [statement for statement in entry.body if _sets(statement, name)]
    if not setting:
        return None
    _, end = patch.span(setting[-1])
    return None if any(patch.span(call)[0] < end for call in calls) else setting[-1]


def override_place(patch: Patch, setting: ast.stmt, name: str) -> Place:
    """A new statement behind one that sets a local."""
    _, end = patch.span(setting)
    indent = " " * setting.col_offset
    return Place(end, end, f"\n{indent}{name} = {{}}")


def _sets(statement: ast.stmt, name: str) -> bool:
    return any(
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
        for node in ast.walk(statement)
    )


def _last_before_bracket(source: str) -> tokenize.TokenInfo:
    """The last token before the call's closing bracket that is no layout."""
    reader = tokenize.generate_tokens(io.StringIO(f"({source})").readline)
    tokens = [token for token in reader if token.type not in (*_LAYOUT, tokenize.ENDMARKER)]
    # From the back: the bracket added here, the call's own bracket, then the wanted token.
    return tokens[-3]


def _byte_offset(source: str, position: tuple[int, int]) -> int:
    line, column = position
    lines = source.splitlines(keepends=True)
    if line == 1:
        column -= 1  # the bracket added in front
    before = "".join(lines[: line - 1]) + lines[line - 1][:column]
    return len(before.encode())
