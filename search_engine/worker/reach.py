"""Which functions of a version's text an entry reaches, and what they say."""

from __future__ import annotations

import ast
import re

from search_engine.domain.candidate import python_text
from search_engine.domain.job import Source

_TILE = re.compile(r"\b[A-Z][A-Z0-9_]*\s*=\s*(\d+)\b")
_LARGEST_TILE = 8192


def reached_text(source: Source) -> str:
    """The text of the entry and of every function and class it names, directly or not.

    The whole text if it does not parse or the entry is not found in it.
    """
    try:
        tree = ast.parse(python_text(source.text))
    except (SyntaxError, ValueError):
        return source.text
    defined = {
        node.name: node
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
    }
    pending, seen = [source.entry.split(".")[0]], set[str]()
    while pending:
        name = pending.pop()
        if name in seen or name not in defined:
            continue
        seen.add(name)
        pending.extend(_names(defined[name]))
    if not seen:
        return source.text
    return "\n".join(ast.unparse(defined[name]) for name in defined if name in seen)


def tiles(source: Source) -> tuple[int, ...]:
    """Block sizes written in the text: powers of two from 16 to 8192 given to an upper-case name.

    Largest first; where tiles begin and end, masks go wrong.
    """
    found = {int(match) for match in _TILE.findall(source.text)}
    powers = {n for n in found if 16 <= n <= _LARGEST_TILE and n & (n - 1) == 0}
    return tuple(sorted(powers, reverse=True))


def has_float_atomics(text: str) -> bool:
    """True if the code adds with atomics, so that sums form in any order, one after another."""
    return "atomic_add" in text


def _names(tree: ast.AST) -> list[str]:
    names = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name)]
    return names + [node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
