"""The one launch of a kernel in its entry: its arguments, its grid, and edits to both."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from search_engine.rules._base import Patch, Subject
from search_engine.rules._host import HostValues
from search_engine.rules._syntax import (
    add_argument,
    add_parameter,
    append,
    assigned_name,
    fresh_name,
    language_alias,
)


@dataclass(frozen=True, slots=True)
class Launch:
    """The only launch of a kernel.

    ``arguments`` maps kernel parameters to what is passed, ``options`` the rest of the keywords.
    ``grid`` is the tuple that gives the grid, wherever the entry writes it; ``meta`` is the name
    by which it sees the meta-parameters, None while it is a plain tuple. ``statement`` holds the
    call and ``grid_statement`` the tuple.
    """

    call: ast.Call
    statement: ast.stmt
    arguments: dict[str, ast.expr]
    options: dict[str, ast.expr]
    grid: ast.Tuple
    grid_statement: ast.stmt
    meta: str | None
    host: HostValues

    def integer(self, parameter: str) -> int | None:
        """The integer passed for a kernel parameter in the main case."""
        node = self.arguments.get(parameter)
        return None if node is None else self.host.integer(node)

    def programs(self, axis: int) -> int | None:
        """Number of programs along a grid axis in the main case."""
        if axis >= len(self.grid.elts):
            return 1
        return self.host.integer(self.grid.elts[axis])


def find_launch(subject: Subject) -> Launch | None:
    """The launch; None if there are several, or something about it is not understood."""
    kernel, entry = subject.kernel_node, subject.entry_node
    if not _plain_jit(kernel):
        return None
    calls = [node for node in ast.walk(entry) if _launches(node, kernel.name)]
    if len(calls) != 1:
        return None
    call = calls[0]
    assert isinstance(call, ast.Call) and isinstance(call.func, ast.Subscript)
    bound = _bind(kernel, call)
    found = _grid(entry, call.func.slice)
    statement = enclosing(entry, call)
    if bound is None or found is None or statement is None:
        return None
    grid, meta = found
    grid_statement = enclosing(entry, grid)
    host = HostValues(subject, bound[0] | defaults(kernel, bound[0]), meta)
    if grid_statement is None:
        return None
    arguments = bound[0] | defaults(kernel, bound[0])
    return Launch(call, statement, arguments, bound[1], grid, grid_statement, meta, host)


def enclosing(function: ast.FunctionDef | ast.With, node: ast.AST) -> ast.stmt | None:
    """The statement that contains a node; None if it runs in a loop or under a condition.

    ``with`` blocks (a device guard) run as often as what is around them.
    """
    for statement in function.body:
        if any(part is node for part in ast.walk(statement)):
            if isinstance(statement, ast.With):
                return enclosing(statement, node)
            plain = (ast.Assign, ast.AnnAssign, ast.Expr, ast.FunctionDef, ast.Return)
            return statement if isinstance(statement, plain) else None
    return None


def defaults(kernel: ast.FunctionDef, given: dict[str, ast.expr]) -> dict[str, ast.expr]:
    """Default values of the parameters that are not given."""
    arguments = kernel.args
    positional = [*arguments.posonlyargs, *arguments.args]
    tail = positional[len(positional) - len(arguments.defaults) :]
    pairs = [*zip(tail, arguments.defaults, strict=True)]
    keyword = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    pairs.extend((argument, value) for argument, value in keyword if value is not None)
    return {argument.arg: value for argument, value in pairs if argument.arg not in given}


def add_size(patch: Patch, subject: Subject, launch: Launch, name: str, value: str) -> None:
    """Give the kernel a run-time argument, before its meta-parameters where they go by keyword."""
    signature, given = subject.kernel_node.args, launch.call.args
    required = len(signature.args) - len(signature.defaults)
    plain = [n for n, a in enumerate(signature.args) if not _is_constexpr(a) and n < required]
    place = plain[-1] + 1 if plain else 0
    if place == 0 or len(given) > place:
        add_parameter(patch, subject.kernel_node, name, "", "0")
        add_argument(patch, launch.call, f"{name}={value}")
        return
    append(patch, signature.args[place - 1], signature.args[place - 1], [name])
    if len(given) == place:
        append(patch, given[-1], given[-1], [value])
    else:
        add_argument(patch, launch.call, f"{name}={value}")


def add_constant(
    patch: Patch, subject: Subject, launch: Launch, name: str, value: str, default: str
) -> None:
    """Give the kernel a meta-parameter, passed by keyword; ``default`` if it must have one."""
    tl = language_alias(subject.tree)
    add_parameter(patch, subject.kernel_node, name, f"{tl}.constexpr", default)
    add_argument(patch, launch.call, f"{name}={value}")


def set_option(patch: Patch, launch: Launch, name: str, value: int) -> None:
    """Set a launch option such as ``num_warps``."""
    present = launch.options.get(name)
    if present is None:
        add_argument(patch, launch.call, f"{name}={value}")
    else:
        patch.replace(present, str(value))


def set_constant(patch: Patch, launch: Launch, name: str, value: str) -> None:
    """Give a meta-parameter another value: where its literal stands, else at the launch."""
    node = launch.arguments[name]
    given = {*launch.call.args, *(item.value for item in launch.call.keywords)}
    if node not in given:
        patch.replace(node, value)  # the default in the kernel's signature
        return
    if isinstance(node, ast.Name):
        bound = launch.host.single_binding(node.id)
        if isinstance(bound, ast.Constant):
            patch.replace(bound, value)
            return
    patch.replace(node, value)


def replace_grid(patch: Patch, subject: Subject, launch: Launch, elements: list[str]) -> None:
    """Write the grid anew, as a function of the meta-parameters.

    A plain tuple becomes a lambda; one inside the brackets of the launch gets a name before it.
    """
    body = f"({', '.join(elements)}{',' if len(elements) == 1 else ''})"
    start, end = patch.span(launch.grid)
    if launch.meta is not None:
        patch.replace_range(start, end, body)
    elif launch.grid_statement is launch.statement:
        name = fresh_name(subject, "grid")
        patch.insert_before(launch.statement, [f"{name} = lambda meta: {body}"])
        patch.replace_range(start, end, name)
    else:
        patch.replace_range(start, end, f"lambda meta: {body}")


def _is_constexpr(parameter: ast.arg) -> bool:
    return parameter.annotation is not None and "constexpr" in ast.unparse(parameter.annotation)


def _plain_jit(kernel: ast.FunctionDef) -> bool:
    if len(kernel.decorator_list) != 1:
        return False
    node = kernel.decorator_list[0]
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return name == "jit"


def _launches(node: ast.AST, kernel: str) -> bool:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Subscript):
        return False
    return isinstance(node.func.value, ast.Name) and node.func.value.id == kernel


def _bind(
    kernel: ast.FunctionDef, call: ast.Call
) -> tuple[dict[str, ast.expr], dict[str, ast.expr]] | None:
    names = [parameter.arg for parameter in kernel.args.args]
    if any(isinstance(argument, ast.Starred) for argument in call.args):
        return None
    if len(call.args) > len(names) or not (call.args or call.keywords):
        return None
    arguments = dict(zip(names, call.args, strict=False))
    options: dict[str, ast.expr] = {}
    for keyword in call.keywords:
        if keyword.arg is None:
            return None
        (arguments if keyword.arg in names else options)[keyword.arg] = keyword.value
    return arguments, options


def _grid(entry: ast.FunctionDef, node: ast.expr) -> tuple[ast.Tuple, str | None] | None:
    if isinstance(node, ast.Tuple):
        return node, None
    if isinstance(node, ast.Lambda) and len(node.args.args) == 1:
        inner = _grid(entry, node.body) if isinstance(node.body, ast.Tuple) else None
        return None if inner is None else (inner[0], node.args.args[0].arg)
    if not isinstance(node, ast.Name):
        return None
    uses = sum(isinstance(part, ast.Name) and part.id == node.id for part in ast.walk(entry))
    for statement in entry.body:
        if assigned_name(statement) == node.id and isinstance(statement, ast.Assign):
            known = uses == 2 and isinstance(statement.value, (ast.Tuple, ast.Lambda))
            return _grid(entry, statement.value) if known else None
        if isinstance(statement, ast.FunctionDef) and statement.name == node.id and uses == 1:
            return _grid_function(statement)
    return None


def _grid_function(function: ast.FunctionDef) -> tuple[ast.Tuple, str] | None:
    only = function.body[-1]
    if len(function.args.args) != 1 or len(function.body) != 1 or not isinstance(only, ast.Return):
        return None
    if not isinstance(only.value, ast.Tuple):
        return None
    return only.value, function.args.args[0].arg
