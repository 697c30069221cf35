"""What checks read in the source text itself: the statement on a line, and what it calls."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator

from search_engine.domain.kernel import Kernel
from search_engine.findings._base import Subject

_SLOW_PATHS = frozenset({"sin", "cos", "tan", "sincos", "j0", "j1", "y0", "y1"})
"""Functions whose path for large arguments indexes an array and multiplies in double precision."""


@functools.lru_cache(maxsize=32)
def syntax_tree(text: str) -> ast.Module | None:
    """The tree of a file; None where Python cannot parse it."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):
        return None


def function_of(subject: Subject, kernel: Kernel) -> ast.FunctionDef | None:
    """The definition of a kernel or helper."""
    return _functions(subject.module.text).get(kernel.name_span.line)


@functools.lru_cache(maxsize=32)
def functions_by_name(text: str) -> dict[str, ast.FunctionDef]:
    """Every function of a file by its name; the last of equals."""
    return {node.name: node for node in _functions(text).values()}


@functools.lru_cache(maxsize=32)
def global_constants(text: str) -> dict[str, object]:
    """Literals that the file's top level gives names to: ``N = 4``, ``N = tl.constexpr(4)``."""
    tree = syntax_tree(text)
    found: dict[str, object] = {}
    for node in tree.body if tree is not None else ():
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            value = node.value
            if called_name(value) == "constexpr" and isinstance(value, ast.Call) and value.args:
                value = value.args[0]
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if isinstance(value, ast.Constant):
                found |= {item.id: value.value for item in targets if isinstance(item, ast.Name)}
    return found


def statement_at(subject: Subject, line: int) -> ast.stmt | None:
    """The innermost statement of the unit that covers a 0-based line."""
    functions = [function_of(subject, k) for k in (subject.unit.kernel, *subject.unit.helpers)]
    found = [
        node
        for function in functions
        if function is not None
        for node in _statements(function)
        if _covers(node, line)
    ]
    return min(found, key=lambda node: (node.end_lineno or node.lineno) - node.lineno, default=None)


def expressions_at(subject: Subject, line: int) -> tuple[ast.expr, ...]:
    """Every expression of that statement; of a loop or branch those of its header only."""
    statement = statement_at(subject, line)
    return () if statement is None else tuple(_own_expressions(statement))


def calls_at(subject: Subject, line: int) -> frozenset[str]:
    """Names of the functions that the statement on a line calls: ``load``, ``sin``."""
    return frozenset(
        name for node in expressions_at(subject, line) if (name := called_name(node)) is not None
    )


def called_name(node: ast.AST) -> str | None:
    """``sin`` for ``tl.math.sin(x)`` and ``sin(x)``."""
    if not isinstance(node, ast.Call):
        return None
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else None


def has_slow_path(subject: Subject, line: int) -> bool:
    """True if a library function explains local memory and doubles on the line.

    The slow path of sine, cosine and tangent reduces large arguments with an array in local memory.
    It is never taken for arguments of usual size (triton issue 1756).
    """
    return bool(calls_at(subject, line) & _SLOW_PATHS) or _uses(subject, line, "libdevice")


def divisors_at(subject: Subject, line: int) -> tuple[ast.expr, ...]:
    """What the statement divides by with ``//``, ``%`` or ``cdiv``."""
    found: list[ast.expr] = []
    for node in expressions_at(subject, line):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv | ast.Mod):
            found.append(node.right)
        elif isinstance(node, ast.Call) and called_name(node) == "cdiv" and len(node.args) == 2:
            found.append(node.args[1])
    return tuple(found)


@functools.lru_cache(maxsize=32)
def _functions(text: str) -> dict[int, ast.FunctionDef]:
    """Every function of a file by the 0-based line of its ``def``."""
    tree = syntax_tree(text)
    nodes = ast.walk(tree) if tree is not None else ()
    return {node.lineno - 1: node for node in nodes if isinstance(node, ast.FunctionDef)}


@functools.lru_cache(maxsize=256)
def _statements(function: ast.FunctionDef) -> tuple[ast.stmt, ...]:
    return tuple(node for node in ast.walk(function) if isinstance(node, ast.stmt))


def _covers(node: ast.stmt, line: int) -> bool:
    return node.lineno - 1 <= line <= (node.end_lineno or node.lineno) - 1


def _own_expressions(statement: ast.stmt) -> Iterator[ast.expr]:
    for child in ast.iter_child_nodes(statement):
        if isinstance(child, ast.expr):
            for node in ast.walk(child):
                if isinstance(node, ast.expr):
                    yield node


def _uses(subject: Subject, line: int, name: str) -> bool:
    return any(
        (isinstance(node, ast.Name) and node.id == name)
        or (isinstance(node, ast.Attribute) and node.attr == name)
        for node in expressions_at(subject, line)
    )
