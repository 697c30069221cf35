"""Whether a kernel needs a parameter at compile time, or would take it as a plain argument."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from search_engine.domain.kernel import Kernel
from search_engine.findings._base import Subject
from search_engine.findings._source import called_name, function_of

_PLAIN_CALLS = frozenset({"range", "min", "max", "float", "int", "abs"})
_AT_COMPILE_TIME = frozenset({
    "arange", "zeros", "full", "static_range", "static_assert", "static_print", "reshape", "view",
    "broadcast_to", "constexpr", "multiple_of", "max_contiguous", "max_constancy", "histogram",
    "expand_dims", "join", "permute", "trans",
})  # fmt: skip
_RUN_TIME_ARGUMENTS = {"make_block_ptr": 4, "make_tensor_descriptor": 3}
"""Leading arguments that may be known at run time only: base, shape, strides, offsets."""
_RUN_TIME_NAMES = frozenset({"base", "shape", "strides", "offsets"})


def needs_constant(subject: Subject, kernel: Kernel, parameter: str) -> bool:
    """True unless every use is arithmetic, a comparison, an address or a loop bound."""
    return _needs(subject, kernel, parameter, frozenset())


def _needs(subject: Subject, kernel: Kernel, parameter: str, seen: frozenset[str]) -> bool:
    function = function_of(subject, kernel)
    if function is None or kernel.qualified_name in seen:
        return True
    names = _derived(function, parameter)
    if names is None:
        return True
    inner = seen | {kernel.qualified_name}
    return any(
        _at_compile_time(subject, path, inner)
        for statement in function.body
        for path in _paths(statement, names)
    )


def _derived(function: ast.FunctionDef, parameter: str) -> frozenset[str] | None:
    """The parameter and names computed from it; None if one of them is declared constexpr."""
    names = {parameter}
    assignments = [item for item in ast.walk(function) if isinstance(item, ast.Assign)]
    for _ in range(len(assignments)):
        before = len(names)
        for item in assignments:
            if _reads(item.value, names):
                names |= {target.id for target in item.targets if isinstance(target, ast.Name)}
        if len(names) == before:
            break
    declared = (item for item in ast.walk(function) if isinstance(item, ast.AnnAssign))
    if any(item.value is not None and _reads(item.value, names) for item in declared):
        return None
    return frozenset(names)


def _reads(node: ast.expr, names: set[str]) -> bool:
    """True if a scalar is computed from the names: no load or block stands in between."""
    if isinstance(node, ast.Call) and called_name(node) not in ("cdiv", "min", "max", "minimum"):
        return False
    if isinstance(node, ast.Name):
        return node.id in names
    return any(
        _reads(item, names) for item in ast.iter_child_nodes(node) if isinstance(item, ast.expr)
    )


def _paths(
    node: ast.AST, names: frozenset[str], calls: tuple[tuple[ast.Call, ast.AST], ...] = ()
) -> Iterator[tuple[tuple[ast.Call, ast.AST], ...]]:
    """For each use of the names, the calls around it from outside, each with the argument."""
    if isinstance(node, ast.Name) and node.id in names and isinstance(node.ctx, ast.Load):
        yield calls
    for child in ast.iter_child_nodes(node):
        around = (*calls, (node, child)) if isinstance(node, ast.Call) else calls
        yield from _paths(child, names, around)


def _at_compile_time(
    subject: Subject, path: tuple[tuple[ast.Call, ast.AST], ...], seen: frozenset[str]
) -> bool:
    for call, argument in path:
        name = called_name(call) or ""
        if name in _AT_COMPILE_TIME:
            return True
        if name in _RUN_TIME_ARGUMENTS and not _at_run_time(call, argument, name):
            return True
        if isinstance(call.func, ast.Name) and name not in _PLAIN_CALLS:
            return _helper_needs(subject, call, argument, name, seen)
    return False


def _at_run_time(call: ast.Call, argument: ast.AST, name: str) -> bool:
    if isinstance(argument, ast.keyword):
        return argument.arg in _RUN_TIME_NAMES
    return argument in call.args[: _RUN_TIME_ARGUMENTS[name]]


def _helper_needs(
    subject: Subject, call: ast.Call, argument: ast.AST, name: str, seen: frozenset[str]
) -> bool:
    """The same question of the helper that gets the value; unknown functions need it."""
    helper = next((item for item in subject.unit.helpers if item.name == name), None)
    if helper is None or any(isinstance(item, ast.Starred) for item in call.args):
        return True
    if isinstance(argument, ast.keyword):
        parameter = argument.arg
    else:
        index = next((i for i, item in enumerate(call.args) if item is argument), None)
        known = index is not None and index < len(helper.parameters)
        parameter = helper.parameters[index].name if known and index is not None else None
    return parameter is None or _needs(subject, helper, parameter, seen)
