"""Reading and editing of Triton syntax that several rules need.

A function that does not understand what it sees answers None or raises nothing: a rule then offers
no rewrite.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from search_engine.rules._base import Patch, Subject

_LINE = 100
"""Longer lists go on below their first item."""


@dataclass(frozen=True, slots=True)
class BoundLaunch:
    """One launch of the subject's kernel with its arguments by parameter name.

    ``statement`` is the simple statement of the entry that consists of the launch; ``grid`` is the
    expression in the brackets.
    """

    call: ast.Call
    statement: ast.stmt
    grid: ast.expr
    arguments: dict[str, ast.expr]


def bound_launches(subject: Subject) -> tuple[BoundLaunch, ...]:
    """Every launch of the kernel; empty if one of them cannot be read completely."""
    statements = [node for node in ast.walk(subject.entry_node) if isinstance(node, ast.stmt)]
    bound: list[BoundLaunch] = []
    for node in ast.walk(subject.entry_node):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Subscript):
            continue
        base = node.func.value
        if not (isinstance(base, ast.Name) and base.id == subject.kernel_node.name):
            continue
        statement = next((s for s in statements if _is_statement_of(s, node)), None)
        arguments = _bind(subject.kernel_node, node)
        if statement is None or arguments is None:
            return ()
        bound.append(BoundLaunch(node, statement, node.func.slice, arguments))
    return tuple(bound)


def parameters(kernel: ast.FunctionDef) -> tuple[str, ...]:
    """Names of all parameters in order."""
    return tuple(argument.arg for argument in (*kernel.args.posonlyargs, *kernel.args.args))


def constexpr_parameters(kernel: ast.FunctionDef) -> frozenset[str]:
    """Parameters annotated with ``constexpr``."""
    return frozenset(
        argument.arg
        for argument in kernel.args.args
        if argument.annotation is not None and "constexpr" in ast.unparse(argument.annotation)
    )


def body(function: ast.FunctionDef) -> list[ast.stmt]:
    """Statements after the docstring."""
    has_docstring = ast.get_docstring(function, clean=False) is not None
    return function.body[1:] if has_docstring else function.body


def language_alias(tree: ast.Module) -> str | None:
    """The name under which the file imports ``triton.language``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for item in node.names:
                if item.name == "triton.language" and item.asname:
                    return item.asname
        if isinstance(node, ast.ImportFrom) and node.module == "triton":
            for item in node.names:
                if item.name == "language":
                    return item.asname or item.name
    return None


def triton_alias(tree: ast.Module) -> str | None:
    """The name under which the file imports ``triton``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for item in node.names:
                if item.name == "triton":
                    return item.asname or item.name
                if item.name.startswith("triton.") and item.asname is None:
                    return "triton"
    return None


def language_call(node: ast.AST, alias: str) -> str | None:
    """``load`` for a call of ``tl.load``; also looks into ``tl.math``. None for other nodes."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    owner = node.func.value
    if isinstance(owner, ast.Attribute) and owner.attr == "math":
        owner = owner.value
    return node.func.attr if isinstance(owner, ast.Name) and owner.id == alias else None


def argument(call: ast.Call, position: int, name: str) -> ast.expr | None:
    """An argument of a call that may be given by position or by name."""
    if len(call.args) > position:
        return call.args[position]
    return next((item.value for item in call.keywords if item.arg == name), None)


def names_read(node: ast.AST) -> set[str]:
    """Names that a node reads; the target of an augmented assignment counts."""
    found = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and _is_load(n)}
    for part in ast.walk(node):
        if isinstance(part, ast.AugAssign) and isinstance(part.target, ast.Name):
            found.add(part.target.id)
    return found


def names_assigned(node: ast.AST) -> set[str]:
    """Names that a node assigns."""
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and not _is_load(n)}


def assigned_name(statement: ast.stmt) -> str | None:
    """``x`` for the statement ``x = ...``."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    target = statement.targets[0]
    return target.id if isinstance(target, ast.Name) else None


def is_literal(node: ast.expr) -> bool:
    """A number, or an infinity as people write it: ``-float("inf")``."""
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.USub | ast.UAdd) and is_literal(node.operand)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "float":
        return len(node.args) == 1 and isinstance(node.args[0], ast.Constant)
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float)


def literal_value(node: ast.expr) -> float | None:
    """The value of a literal in the sense of ``is_literal``."""
    if not is_literal(node):
        return None
    if isinstance(node, ast.UnaryOp):
        value = literal_value(node.operand)
        return None if value is None else (-value if isinstance(node.op, ast.USub) else value)
    constant = node.args[0] if isinstance(node, ast.Call) else node
    assert isinstance(constant, ast.Constant)
    try:
        return float(constant.value)  # pyright: ignore[reportArgumentType]
    except (TypeError, ValueError):
        return None


def same(left: ast.AST, right: ast.AST) -> bool:
    """Equal syntax, positions aside."""
    return ast.dump(left) == ast.dump(right)


def fresh_name(subject: Subject, wanted: str) -> str:
    """``wanted``, or the first of ``wanted_2``, ... that occurs nowhere in the file."""
    taken = set(re.findall(r"\w+", subject.text))
    name, number = wanted, 2
    while name in taken:
        name, number = f"{wanted}_{number}", number + 1
    return name


def is_repeatable(node: ast.expr) -> bool:
    """True if evaluating a host expression twice has no effect and gives the same value."""
    for part in ast.walk(node):
        if isinstance(part, ast.Call):
            function = part.func
            name = function.attr if isinstance(function, ast.Attribute) else ""
            name = function.id if isinstance(function, ast.Name) else name
            if name not in {"size", "stride", "numel", "dim", "len", "cdiv", "min", "max"}:
                return False
        elif not isinstance(part, _REPEATABLE):
            return False
    return True


_REPEATABLE = (
    ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator,
    ast.unaryop, ast.expr_context, ast.Slice, ast.Tuple,
)  # fmt: skip


def blocks(function: ast.FunctionDef) -> Iterator[list[ast.stmt]]:
    """Every list of statements inside a function, outermost first."""
    for node in ast.walk(function):
        for name in ("body", "orelse"):
            statements = getattr(node, name, None)
            if isinstance(statements, list) and statements:
                yield statements  # pyright: ignore[reportUnknownVariableType]


def with_changes(patch: Patch, node: ast.AST, changes: Mapping[ast.AST, str]) -> str:
    """The text of a node in which inner nodes are replaced; the outermost change wins."""
    start, end = patch.span(node)
    if node in changes:
        return changes[node]
    pieces: list[tuple[int, int, str]] = []
    _collect(patch, node, changes, pieces)
    data = patch.source(node).encode()
    for left, right, text in sorted(pieces, reverse=True):
        data = data[: left - start] + text.encode() + data[right - start :]
    assert end >= start
    return data.decode()


def add_parameter(
    patch: Patch, kernel: ast.FunctionDef, name: str, kind: str, default: str
) -> bool:
    """Append one parameter; see ``add_parameters``."""
    return add_parameters(patch, kernel, [(name, kind, default)])


def add_parameters(
    patch: Patch, kernel: ast.FunctionDef, wanted: Sequence[tuple[str, str, str]]
) -> bool:
    """Append parameters ``(name, annotation, default)``.

    The default is written only if an earlier parameter has one. False if the signature is not
    understood.
    """
    if kernel.args.vararg or kernel.args.kwarg or kernel.args.kwonlyargs or not kernel.args.args:
        return False
    last: ast.AST = kernel.args.args[-1]
    texts = [f"{name}: {kind}" if kind else name for name, kind, _ in wanted]
    if kernel.args.defaults:
        last = kernel.args.defaults[-1]
        equals = [" = " if kind else "=" for _, kind, _ in wanted]
        texts = [
            f"{text}{sign}{default}"
            for text, sign, (_, _, default) in zip(texts, equals, wanted, strict=True)
        ]
    append(patch, kernel.args.args[-1], last, texts)
    return True


def append(patch: Patch, anchor: ast.AST, last: ast.AST, texts: Sequence[str]) -> None:
    """Put texts behind ``last``, the end of a list whose last item begins with ``anchor``."""
    start, end = patch.span(anchor)[0], patch.span(last)[1]
    before = patch.text_before(start)
    line = patch.text_before(end) + "".join(f", {text}" for text in texts) + patch.text_after(end)
    first, between = ", ", ", "
    if not before.strip():
        first = between = f",\n{before}"  # one item on each line
    elif len(line) > _LINE:
        first = ",\n" + " " * _list_column(before)
    patch.replace_range(end, end, first + between.join(texts))


def _list_column(before: str) -> int:
    """Where the items of a list begin on a line that ends inside it."""
    depth = 0
    for column in range(len(before) - 1, -1, -1):
        depth += (before[column] in ")]}") - (before[column] in "([{")
        if depth < 0:
            return column + 1
    return len(before) - len(before.lstrip())


def add_argument(patch: Patch, call: ast.Call, text: str) -> None:
    """Append one argument to a call that has one already."""
    add_arguments(patch, call, [text])


def add_arguments(patch: Patch, call: ast.Call, texts: Sequence[str]) -> None:
    """Append arguments to a call that has one already."""
    parts: Sequence[ast.AST] = [*call.args, *call.keywords]
    last = max(parts, key=lambda node: patch.span(node))
    append(patch, last, last, texts)


def _collect(
    patch: Patch, node: ast.AST, changes: Mapping[ast.AST, str], out: list[tuple[int, int, str]]
) -> None:
    for child in ast.iter_child_nodes(node):
        if child in changes:
            out.append((*patch.span(child), changes[child]))
        else:
            _collect(patch, child, changes, out)


def _is_load(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Load)


def _is_statement_of(statement: ast.stmt, call: ast.Call) -> bool:
    return isinstance(statement, ast.Expr | ast.Assign) and statement.value is call


def _bind(kernel: ast.FunctionDef, call: ast.Call) -> dict[str, ast.expr] | None:
    names = parameters(kernel)
    if len(call.args) > len(names) or any(isinstance(arg, ast.Starred) for arg in call.args):
        return None
    bound = dict(zip(names, call.args, strict=False))
    for keyword in call.keywords:
        if keyword.arg is None:
            return None
        if keyword.arg in names:
            bound[keyword.arg] = keyword.value
    return bound
