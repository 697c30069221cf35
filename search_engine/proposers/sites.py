"""Where a unit stands in the syntax tree: its kernels, its entry, the launches and their grids."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from search_engine.domain.candidate import python_text
from search_engine.domain.kernel import Module, Span, Unit


@dataclass(frozen=True, slots=True)
class LaunchSite:
    """One call ``kernel[grid](...)`` in the entry.

    ``arguments`` maps kernel parameters to what the launch passes; ``grid`` holds the grid
    expression and everything in the entry that it is made from. ``opaque`` means that ``*args`` or
    ``**kwargs`` hide arguments.
    """

    kernel: str
    call: ast.Call
    arguments: dict[str, ast.expr]
    options: dict[str, ast.expr]
    grid: tuple[ast.AST, ...]
    opaque: bool

    def grid_mentions(self, names: Iterable[str]) -> bool:
        """True if the grid is computed from one of the names, or from ``meta["NAME"]``."""
        wanted = set(names)
        return any(
            (isinstance(node, ast.Name) and node.id in wanted)
            or (isinstance(node, ast.Constant) and node.value in wanted)
            for part in self.grid
            for node in ast.walk(part)
        )


@dataclass(frozen=True, slots=True)
class Sites:
    """The syntax nodes of one unit. ``kernels`` holds the unit's kernel first, then siblings."""

    tree: ast.Module
    kernels: dict[str, ast.FunctionDef]
    entry: ast.FunctionDef | None
    launches: tuple[LaunchSite, ...]

    def launches_of(self, kernel: str) -> tuple[LaunchSite, ...]:
        """The launches of one kernel, in source order."""
        return tuple(site for site in self.launches if site.kernel == kernel)


def find_sites(module: Module, unit: Unit) -> Sites:
    """Locate a unit in its text. Raises SyntaxError if the text does not parse."""
    tree = ast.parse(python_text(module.text))
    kernels = {
        part.name: node
        for part in (unit.kernel, *unit.siblings)
        if (node := _function_at(tree, part.name, part.span)) is not None
    }
    entry = None
    if unit.entry is not None:
        entry = _function_at(tree, unit.entry.name, unit.entry.span)
    launches = tuple(_launches(entry, kernels)) if entry is not None else ()
    return Sites(tree, kernels, entry, launches)


def constexpr_parameters(kernel: ast.FunctionDef) -> tuple[str, ...]:
    """Names of the parameters annotated as constexpr."""
    return tuple(
        argument.arg
        for argument in parameters(kernel)
        if argument.annotation is not None and "constexpr" in ast.unparse(argument.annotation)
    )


def parameters(function: ast.FunctionDef) -> list[ast.arg]:
    """All named parameters, in the order in which positional arguments fill them."""
    arguments = function.args
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]


def defaults(function: ast.FunctionDef) -> dict[str, ast.expr]:
    """Default values by parameter name."""
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    found = {
        argument.arg: value
        for argument, value in zip(
            positional[len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True
        )
    }
    for argument, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if value is not None:
            found[argument.arg] = value
    return found


def bindings(scope: ast.AST, name: str) -> list[ast.expr | None]:
    """Every value that a scope gives to a name; None where it cannot be read off."""
    return [value for target, value in _assignments(scope) if target == name]


def module_bindings(tree: ast.Module, name: str) -> list[ast.expr | None]:
    """Every value that the top level of a file gives to a name."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return bindings(
        ast.Module([node for node in tree.body if not isinstance(node, functions)], []), name
    )


def integer(node: ast.AST | None) -> int | None:
    """The value of an integer written as a literal or as ``2 ** 7``, ``1 << 7``, ``4 * 32``."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if not isinstance(node, ast.BinOp):
        return None
    left, right = integer(node.left), integer(node.right)
    if left is None or right is None or not 0 <= right <= 1 << 20:
        return None
    if isinstance(node.op, ast.Mult):
        return left * right
    if isinstance(node.op, ast.Pow) and right <= 30:
        return left**right
    if isinstance(node.op, ast.LShift) and right <= 30:
        return left << right
    return None


def last_name(node: ast.expr) -> str | None:
    """``k`` for ``k``, ``module.k`` and ``wrap(k)``."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Call) and node.args:
        return last_name(node.args[0])
    return None


def _function_at(tree: ast.Module, name: str, span: Span) -> ast.FunctionDef | None:
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.FunctionDef)
            and node.name == name
            and span.line <= node.lineno - 1 <= span.end_line
        ):
            return node
    return None


def _launches(entry: ast.FunctionDef, kernels: dict[str, ast.FunctionDef]) -> Iterator[LaunchSite]:
    calls = [node for node in ast.walk(entry) if isinstance(node, ast.Call)]
    for call in sorted(calls, key=lambda call: (call.lineno, call.col_offset)):
        if not isinstance(call.func, ast.Subscript):
            continue
        name = last_name(call.func.value)
        if name in kernels:
            yield _launch(entry, call, call.func.slice, name, kernels[name])


def _launch(
    entry: ast.FunctionDef, call: ast.Call, grid: ast.expr, name: str, kernel: ast.FunctionDef
) -> LaunchSite:
    names = [parameter.arg for parameter in parameters(kernel)]
    starred = any(isinstance(argument, ast.Starred) for argument in call.args)
    opaque = starred or any(keyword.arg is None for keyword in call.keywords)
    arguments = {} if starred else dict(zip(names, call.args, strict=False))
    options: dict[str, ast.expr] = {}
    for keyword in call.keywords:
        if keyword.arg in names:
            arguments[keyword.arg] = keyword.value
        elif keyword.arg is not None:
            options[keyword.arg] = keyword.value
    return LaunchSite(name, call, arguments, options, _grid_parts(entry, grid), opaque)


def _grid_parts(entry: ast.FunctionDef, grid: ast.expr) -> tuple[ast.AST, ...]:
    """The grid expression with the local values and functions that it is made from."""
    parts: list[ast.AST] = [grid]
    seen: set[str] = set()
    for part in parts:
        for node in ast.walk(part):
            if not isinstance(node, ast.Name) or node.id in seen:
                continue
            seen.add(node.id)
            parts.extend(value for value in bindings(entry, node.id) if value is not None)
            parts.extend(
                inner
                for inner in ast.walk(entry)
                if isinstance(inner, ast.FunctionDef) and inner.name == node.id
            )
    return tuple(parts)


def _assignments(scope: ast.AST) -> Iterator[tuple[str, ast.expr | None]]:
    for node in ast.walk(scope):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield from _pairs(target, node.value)
        elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
            yield from _pairs(node.target, node.value)
        elif isinstance(node, (ast.AugAssign, ast.For, ast.comprehension)):
            yield from _pairs(node.target, None)


def _pairs(target: ast.expr, value: ast.expr | None) -> Iterator[tuple[str, ast.expr | None]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, (ast.Tuple, ast.List)):
        values: list[ast.expr | None] = [None] * len(target.elts)
        if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
            values = list(value.elts)
        for item, part in zip(target.elts, values, strict=True):
            yield from _pairs(item, part)
