"""Which parameters of a kernel stand behind a place where the compiler stopped."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

_FURTHEST = 7
"""Assignments followed back from a name: behind that, nearly every parameter is reached."""

_LONGEST_CHAIN = 32


@dataclass(frozen=True, slots=True)
class Blame:
    """The failing expression: parameters that it names, and all that its names are made of."""

    message: str
    line: int
    """Where the kernel stopped, counted from its ``def``: a later line is progress."""
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
    """Read an exception of the compiler against the sources of the kernel and its helpers."""
    message, places = _places(error)
    names: list[str] = _variable_in(message)
    for tree, node in reversed(places):
        read = names or [part.id for part in ast.walk(node) if isinstance(part, ast.Name)]
        if tree.name == function.__name__:
            names = read
            break
        outer = places[places.index((tree, node)) - 1][1] if places[0][1] is not node else None
        names = _passed(tree, outer, _behind(tree, read, getattr(node, "lineno", None)))
    tree = _tree(function.src)
    parameters = set(function.arg_names)
    missing = _missing_name(message)
    return Blame(
        message,
        line=getattr(places[0][1], "lineno", 0) if places else 0,
        named=tuple(dict.fromkeys(name for name in names if name in parameters)),
        behind=_behind(tree, names),
        flags=_guards(tree, missing, parameters) if missing is not None else (),
    )


@functools.lru_cache(64)
def _tree(text: str) -> ast.FunctionDef:
    node = ast.parse(text).body[0]
    assert isinstance(node, ast.FunctionDef)
    return node


def _places(error: BaseException) -> tuple[str, list[tuple[ast.FunctionDef, ast.AST]]]:
    """The innermost message, and where each function of the call chain stopped, outermost first."""
    texts: list[str] = []
    places: list[tuple[ast.FunctionDef, ast.AST]] = []
    current: BaseException | None = error
    while current is not None and len(texts) < _LONGEST_CHAIN:
        texts.append(str(getattr(current, "error_message", None) or current))
        node, text = getattr(current, "node", None), getattr(current, "src", None)
        if isinstance(node, ast.AST) and isinstance(text, str):
            tree = _tree(text)
            if places and places[-1][0] is tree:
                places.pop()
            places.append((tree, node))
        current = current.__cause__ or current.__context__
    spoken = [text for text in texts if text.strip()]
    return (spoken[-1] if spoken else type(error).__name__), places


def _passed(helper: ast.FunctionDef, call: ast.AST | None, wanted: tuple[str, ...]) -> list[str]:
    """Names in the arguments that a call passes for the wanted parameters of a helper."""
    calls = [node for node in ast.walk(call) if isinstance(node, ast.Call)] if call else []
    order = [argument.arg for argument in helper.args.args]
    passed: dict[str, ast.expr] = {}
    for node in calls:
        callee = node.func
        name = callee.attr if isinstance(callee, ast.Attribute) else getattr(callee, "id", None)
        if name == helper.name:
            passed.update(zip(order, node.args, strict=False))
            passed.update({k.arg: k.value for k in node.keywords if k.arg is not None})
    parts = (part for name in wanted if name in passed for part in ast.walk(passed[name]))
    return [part.id for part in parts if isinstance(part, ast.Name)]


def _variable_in(message: str) -> list[str]:
    """The variable that a message about types names."""
    found = re.search(r"(?:[Ll]oop-carried variable|type for) (\w+)", message)
    return [found[1]] if found else []


def _behind(tree: ast.FunctionDef, names: list[str], before: int | None = None) -> tuple[str, ...]:
    """Parameters of the function that flow into the names, nearest first.

    With ``before``, only by assignments above that line.
    """
    parameters = {argument.arg for argument in (*tree.args.args, *tree.args.kwonlyargs)}
    sources = _sources(tree, before)
    found: dict[str, None] = {}
    seen, frontier = set(names), list(names)
    for _ in range(_FURTHEST):
        found.update(dict.fromkeys(name for name in frontier if name in parameters))
        following = (source for name in frontier for source in sources.get(name, ()))
        frontier = [source for source in dict.fromkeys(following) if source not in seen]
        seen.update(frontier)
    return tuple(found)


@functools.lru_cache(32)
def _sources(tree: ast.FunctionDef, before: int | None) -> dict[str, tuple[str, ...]]:
    """For each name the names that its assignments read."""
    found: dict[str, dict[str, None]] = {}
    for node in ast.walk(tree):
        if before is not None and getattr(node, "lineno", 0) >= before:
            continue
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
