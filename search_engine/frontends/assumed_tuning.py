"""Reads autotune lists and heuristics from a kernel's decorators."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from search_engine.domain.kernel import Kernel
from search_engine.frontends.assumed_calls import called_name, keyword
from search_engine.frontends.assumed_host import UNKNOWN, HostScope, Unknown

OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")
"""Triton's options of a launch that exist on every target or are checked by the worker."""

VENDOR_OPTIONS = ("waves_per_eu", "matrix_instr_nonkdim", "kpack")
_TUNERS = ("autotune", "libtuner")
_DEEPEST = 8


@dataclass(frozen=True, slots=True)
class Tuned:
    """One configuration: constants and options whose values are known."""

    constants: dict[str, object] = field(default_factory=dict[str, object])
    options: dict[str, int] = field(default_factory=dict[str, int])
    present: bool = False
    """True if the kernel has an autotune list, readable or not."""


def first_configuration(kernel: Kernel, scope: HostScope) -> Tuned:
    """The first ``triton.Config`` of the kernel's autotune list."""
    present = False
    for call in _decorators(kernel):
        name = called_name(call.func)
        if not any(name == tuner or name.endswith(f"_{tuner}") for tuner in _TUNERS):
            continue
        present = True
        listed = keyword(call, "configs") or (call.args[0] if call.args else None)
        found = _first(listed, scope, 0)
        if found is not None:
            return _tuned(*found)
    return Tuned(present=present)


def heuristic_value(
    kernel: Kernel, scope: HostScope, name: str, arguments: Mapping[str, object]
) -> object:
    """What a ``triton.heuristics`` lambda gives for ``name``; UNKNOWN if none does.

    ``arguments`` are the values of the launch's arguments as far as they are known.
    """
    lambdas = _heuristics(kernel, scope)
    if name not in lambdas:
        return UNKNOWN
    node = lambdas[name]
    if not isinstance(node, ast.Lambda) or not node.args.args:
        return UNKNOWN
    extra = {**scope.extra, node.args.args[0].arg: dict(arguments)}
    return HostScope(scope.tree, extra=extra).value(node.body)


def heuristic_subjects(kernel: Kernel, scope: HostScope) -> dict[str, str]:
    """Flags that say ``args["x"] is not None``, with the argument that each asks about."""
    found: dict[str, str] = {}
    for flag, node in _heuristics(kernel, scope).items():
        body = node.body if isinstance(node, ast.Lambda) else None
        match body:
            case ast.Compare(
                left=ast.Subscript(slice=ast.Constant(value=str(subject))),
                ops=[ast.IsNot()],
                comparators=[ast.Constant(value=None)],
            ):
                found[flag] = subject
            case _:
                pass
    return found


def unspecialised(kernel: Kernel) -> tuple[frozenset[str], frozenset[str]]:
    """Parameters whose values, and whose alignment, the decorator withholds from the compiler."""
    values: set[str] = set()
    alignments: set[str] = set()
    names = [parameter.name for parameter in kernel.parameters]
    for call in _decorators(kernel):
        for argument, into in (
            ("do_not_specialize", values),
            ("do_not_specialize_on_alignment", alignments),
        ):
            listed = keyword(call, argument)
            for part in listed.elts if isinstance(listed, (ast.List, ast.Tuple)) else ():
                match part:
                    case ast.Constant(value=str(name)):
                        into.add(name)
                    case ast.Constant(value=int(index)) if index < len(names):
                        into.add(names[index])
                    case _:
                        pass
    return frozenset(values), frozenset(alignments)


def _heuristics(kernel: Kernel, scope: HostScope) -> dict[str, ast.expr]:
    found: dict[str, ast.expr] = {}
    for call in _decorators(kernel):
        if called_name(call.func) != "heuristics":
            continue
        listed = keyword(call, "values") or (call.args[0] if call.args else None)
        if isinstance(listed, ast.Name):
            listed = _module_expression(scope, listed.id)
        if isinstance(listed, ast.Dict):
            for key, value in zip(listed.keys, listed.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    found[key.value] = value
    return found


def _decorators(kernel: Kernel) -> list[ast.Call]:
    found: list[ast.Call] = []
    for decorator in kernel.decorators:
        try:
            node = ast.parse(decorator.text.strip(), mode="eval").body
        except (SyntaxError, ValueError):
            continue
        if isinstance(node, ast.Call):
            found.append(node)
    return found


def _first(
    node: ast.expr | None, scope: HostScope, depth: int
) -> tuple[ast.Call, HostScope] | None:
    """The first ``Config(...)`` of a list-like expression, with the names it is made of."""
    if node is None or depth > _DEEPEST:
        return None
    match node:
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            return next(
                (found for part in parts if (found := _first(part, scope, depth + 1))), None
            )
        case ast.Starred(value=inner) | ast.Subscript(value=inner):
            return _first(inner, scope, depth + 1)
        case ast.ListComp(elt=element, generators=generators):
            return _first(element, _first_iteration(generators, scope), depth + 1)
        case ast.BinOp(left=left, right=right):
            return _first(left, scope, depth + 1) or _first(right, scope, depth + 1)
        case ast.IfExp(body=body, orelse=other):
            return _first(body, scope, depth + 1) or _first(other, scope, depth + 1)
        case ast.Name(id=name):
            return _first(_module_expression(scope, name), scope, depth + 1)
        case ast.Call():
            return _from_call(node, scope, depth)
        case _:
            return None


def _from_call(node: ast.Call, scope: HostScope, depth: int) -> tuple[ast.Call, HostScope] | None:
    name = called_name(node.func)
    if name == "Config":
        return node, scope
    if name in ("list", "filter", "sorted"):
        return _first(node.args[-1] if node.args else None, scope, depth + 1)
    function = scope.function_named(name)
    if function is None:
        return None
    inner = HostScope(scope.tree, function, extra=scope.extra)
    for statement in ast.walk(function):
        if isinstance(statement, ast.Return):
            found = _first(statement.value, inner, depth + 1)
            if found is not None:
                return found
    for part in ast.walk(function):
        if isinstance(part, ast.Call) and called_name(part.func) == "Config":
            return part, inner
    return None


def _first_iteration(generators: list[ast.comprehension], scope: HostScope) -> HostScope:
    extra = dict(scope.extra)
    for generator in generators:
        inner = HostScope(scope.tree, scope.function, scope.line, extra)
        values = inner.value(generator.iter)
        items = cast("tuple[object, ...]", values) if isinstance(values, tuple) else ()
        first = items[0] if items else UNKNOWN
        target = generator.target
        if isinstance(target, ast.Name):
            extra[target.id] = first
        elif isinstance(target, ast.Tuple) and isinstance(first, tuple):
            for part, value in zip(target.elts, cast("tuple[object, ...]", first), strict=False):
                if isinstance(part, ast.Name):
                    extra[part.id] = value
    return HostScope(scope.tree, scope.function, scope.line, extra)


def _module_expression(scope: HostScope, name: str) -> ast.expr | None:
    """What a name of the function or of the module was assigned last."""
    bodies = [scope.function.body if scope.function is not None else [], scope.tree.body]
    for body in bodies:
        for statement in reversed(body):
            if isinstance(statement, ast.Assign) and any(
                isinstance(target, ast.Name) and target.id == name for target in statement.targets
            ):
                return statement.value
    return None


def _tuned(call: ast.Call, scope: HostScope) -> Tuned:
    constants: object = scope.value(call.args[0] if call.args else keyword(call, "kwargs"))
    if isinstance(call.args[0] if call.args else None, ast.Call):
        inner = call.args[0]
        assert isinstance(inner, ast.Call)
        constants = {k.arg: scope.value(k.value) for k in inner.keywords if k.arg is not None}
    options: dict[str, int] = {}
    for item in call.keywords:
        value = scope.value(item.value)
        if item.arg in OPTIONS and isinstance(value, int):
            options[item.arg] = value
    pairs = cast("dict[str, object]", constants) if isinstance(constants, dict) else {}
    known = {key: value for key, value in pairs.items() if not isinstance(value, Unknown)}
    return Tuned(known, options, present=True)
