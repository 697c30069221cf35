"""Which parameters of a kernel stand behind a place where the compiler stopped."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

_FURTHEST = 6
"""Assignments followed back from a name: behind that, nearly every parameter is reached."""


@dataclass(frozen=True, slots=True)
class Blame:
    """The failing expression: parameters that it names, and all that its names are made of."""

    message: str
    named: tuple[str, ...]
    behind: tuple[str, ...]
    flags: tuple[tuple[str, str | None], ...] = ()
    """Constants whose tests guard the assignment of a missing name, with the literal that each is
    compared with (None: its truth is tested)."""

    def first(self, names: Iterable[str]) -> tuple[str, ...]:
        """Those of ``names`` that are blamed, nearest first."""
        wanted = set(names)
        return tuple(n for n in dict.fromkeys((*self.named, *self.behind)) if n in wanted)


def blame(error: BaseException, function: Any) -> Blame:
    """Read an exception of the compiler against the kernel's own source."""
    message, nodes = _innermost(error, function)
    tree = kernel_tree(function)
    parameters = set(function.arg_names)
    names = [n.id for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name)]
    named = tuple(dict.fromkeys(name for name in names if name in parameters))
    behind = _behind(tree, names, parameters)
    missing = _missing_name(message)
    flags = _guards(tree, missing, parameters) if missing is not None else ()
    return Blame(message, named, behind, flags)


def kernel_tree(function: Any) -> ast.FunctionDef:
    """The syntax tree of a JITFunction."""
    return _tree(function.src)


@functools.lru_cache(32)
def _tree(text: str) -> ast.FunctionDef:
    node = ast.parse(text).body[0]
    assert isinstance(node, ast.FunctionDef)
    return node


def _innermost(error: BaseException, function: Any) -> tuple[str, list[ast.AST]]:
    """The last message of the chain, and the failing nodes that lie in the kernel itself."""
    texts: list[str] = []
    nodes: list[ast.AST] = []
    current: BaseException | None = error
    while current is not None and len(texts) < 32:
        texts.append(str(getattr(current, "error_message", None) or current))
        node = getattr(current, "node", None)
        if isinstance(node, ast.AST) and getattr(current, "src", None) == function.src:
            nodes = [node]
        current = current.__cause__ or current.__context__
    spoken = [text for text in texts if text.strip()]
    return (spoken[-1] if spoken else type(error).__name__), nodes


def _behind(tree: ast.FunctionDef, names: list[str], parameters: set[str]) -> tuple[str, ...]:
    """Parameters that flow into the names, nearest first."""
    found: dict[str, None] = {}
    seen, frontier = set(names), list(names)
    for _ in range(_FURTHEST):
        following: list[str] = []
        for name in frontier:
            if name in parameters:
                found[name] = None
            for source in _sources(tree).get(name, ()):
                if source not in seen:
                    seen.add(source)
                    following.append(source)
        frontier = following
    found.update(dict.fromkeys(name for name in frontier if name in parameters))
    return tuple(found)


@functools.lru_cache(32)
def _sources(tree: ast.FunctionDef) -> dict[str, tuple[str, ...]]:
    """For each name the names that its assignments read."""
    found: dict[str, dict[str, None]] = {}
    for node in ast.walk(tree):
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, (ast.AugAssign, ast.AnnAssign, ast.For)):
            targets = [node.target]
        value = node.iter if isinstance(node, ast.For) else getattr(node, "value", None)
        if not targets or not isinstance(value, ast.expr):
            continue
        read = [n.id for n in ast.walk(value) if isinstance(n, ast.Name)]
        for target in targets:
            for part in ast.walk(target):
                if isinstance(part, ast.Name):
                    found.setdefault(part.id, {}).update(dict.fromkeys(read))
    return {name: tuple(read) for name, read in found.items()}


def _missing_name(message: str) -> str | None:
    first, _, rest = message.strip().partition(" ")
    name = first.strip("'\"`").removeprefix('NameError("').removeprefix("NameError('")
    return name if rest.startswith("is not defined") and name.isidentifier() else None


def _guards(
    tree: ast.FunctionDef, name: str, parameters: set[str]
) -> tuple[tuple[str, str | None], ...]:
    """Tests of constants around the assignments of a name."""
    found: dict[tuple[str, str | None], None] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and _assigns(node.body, name):
            for part in ast.walk(node.test):
                if isinstance(part, ast.Name) and part.id in parameters:
                    found[(part.id, _compared_with(node.test, part))] = None
    return tuple(found)


def _compared_with(test: ast.expr, name: ast.Name) -> str | None:
    for node in ast.walk(test):
        if isinstance(node, ast.Compare) and node.left is name:
            return ast.unparse(node.comparators[0])
    return None


def _assigns(body: list[ast.stmt], name: str) -> bool:
    return any(
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
        for statement in body
        for node in ast.walk(statement)
    )
