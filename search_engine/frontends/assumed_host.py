"""Evaluates what a host function passes to a launch, as far as the text alone tells.

Sizes of tensors are not known, so most expressions have no value. What is left is what matters:
literals, constants of the module, defaults of the entry, dtypes, and choices among them.
"""

from __future__ import annotations

import ast
import functools
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from search_engine.frontends.assumed_calls import DATA_TYPES, called_name


class Unknown:
    """The type of ``UNKNOWN``: a value that depends on sizes, devices or other modules."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = Unknown()


@dataclass(frozen=True, slots=True)
class Symbol:
    """A value that is written as a name: ``tl.float32``, a device function."""

    text: str


@dataclass(frozen=True, slots=True)
class Given:
    """A tensor that is passed: not None, and nothing else is known about it."""


GIVEN: Final = Given()

_OPERATOR: Any = operator
"""Without the types of its stubs, which say nothing about the results."""

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: _OPERATOR.add, ast.Sub: _OPERATOR.sub, ast.Mult: _OPERATOR.mul,
    ast.Div: _OPERATOR.truediv, ast.FloorDiv: _OPERATOR.floordiv, ast.Mod: _OPERATOR.mod,
    ast.Pow: _OPERATOR.pow, ast.BitAnd: _OPERATOR.and_, ast.BitOr: _OPERATOR.or_,
    ast.LShift: _OPERATOR.lshift, ast.RShift: _OPERATOR.rshift,
}  # fmt: skip
_COMPARED: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: _OPERATOR.eq, ast.NotEq: _OPERATOR.ne, ast.Lt: _OPERATOR.lt, ast.LtE: _OPERATOR.le,
    ast.Gt: _OPERATOR.gt, ast.GtE: _OPERATOR.ge, ast.Is: _OPERATOR.is_,
    ast.IsNot: _OPERATOR.is_not, ast.In: lambda a, b: a in b, ast.NotIn: lambda a, b: a not in b,
}  # fmt: skip
_DEEPEST = 24
_LONGEST_RANGE = 64
_LARGEST_POWER = 64
"""Exponents above it make numbers that nobody launches with."""


@functools.lru_cache(16)
def parse_text(text: str) -> ast.Module:
    """The syntax tree of a module; an empty one if the text does not parse."""
    try:
        return ast.parse(text.removeprefix("\ufeff"))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module(body=[], type_ignores=[])


@dataclass(slots=True)
class HostScope:
    """Names as they stand before one line of a host function.

    ``function`` is None at module level. ``extra`` are values that win over the text.
    """

    tree: ast.Module
    function: ast.FunctionDef | ast.AsyncFunctionDef | None = None
    line: int | None = None
    """1-based: assignments behind it do not count."""
    extra: Mapping[str, object] = field(default_factory=dict[str, object])

    def text_value(self, text: str) -> object:
        """Value of an expression's text, ``UNKNOWN`` if it cannot be told."""
        try:
            return self.value(ast.parse(text.strip(), mode="eval").body)
        except (SyntaxError, ValueError, RecursionError):
            return UNKNOWN

    def value(self, node: ast.expr | None, depth: int = 0) -> object:
        """Value of an expression, ``UNKNOWN`` if it cannot be told."""
        if node is None or depth > _DEEPEST:
            return UNKNOWN
        rule = _RULES.get(type(node))
        if rule is None:
            return UNKNOWN
        try:
            return rule(self, node, depth + 1)
        except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError):
            return UNKNOWN

    def name(self, name: str, depth: int) -> object:
        """Value of a name: local assignments first, then parameters, then the module."""
        if name in self.extra:
            return self.extra[name]
        replaced = False
        for value, index in reversed(self._assignments(name)):
            found = self._bound(value, index, name, depth)
            if found is not UNKNOWN:
                return found
            replaced = replaced or not _mentions(value, name)
        if replaced:
            return UNKNOWN
        if self.function is not None:
            default = parameter_default(self.function, name)
            if default is not None:
                return self.value(default, depth)
            if _is_tensor(annotation_of(self.function, name)):
                return GIVEN
            if annotation_of(self.function, name) is not None or _has(self.function, name):
                return UNKNOWN
        return self.module_name(name, depth)

    def module_name(self, name: str, depth: int = 0) -> object:
        """Value of a constant of the module."""
        outer = HostScope(self.tree, extra=self.extra)
        for statement in reversed(list(_statements(self.tree.body))):
            for target, value in _targets(statement):
                if target == name and value is not None:
                    found = outer.value(value, depth)
                    if found is not UNKNOWN:
                        return found
        for statement in self.tree.body:
            if isinstance(statement, ast.FunctionDef) and statement.name == name:
                return Symbol(name)
        return UNKNOWN

    def class_constant(self, owner: str, name: str, depth: int) -> object:
        """Value of a constant in a class of the module: a member of an enumeration."""
        for node in self.tree.body:
            if isinstance(node, ast.ClassDef) and node.name == owner:
                for target, value in (pair for s in node.body for pair in _targets(s)):
                    if target == name:
                        return HostScope(self.tree).value(value, depth)
        return UNKNOWN

    def function_named(self, name: str) -> ast.FunctionDef | None:
        """A function of the module."""
        found = (s for s in self.tree.body if isinstance(s, ast.FunctionDef) and s.name == name)
        return next(found, None)

    def _assignments(self, name: str) -> list[tuple[ast.expr, int | None]]:
        if self.function is None:
            return []
        found: list[tuple[ast.expr, int | None]] = []
        for node in ast.walk(self.function):
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
                if self.line is not None and node.lineno >= self.line:
                    continue
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target in targets:
                    position = _position(target, name)
                    if position is not None:
                        found.append((node.value, position[0]))
        return sorted(found, key=lambda item: item[0].lineno)

    def _bound(self, value: ast.expr, index: int | None, name: str, depth: int) -> object:
        if _mentions(value, name):
            before = HostScope(self.tree, self.function, value.lineno, self.extra)
            return before.value(value, depth + 4)
        if index is None:
            return self.value(value, depth)
        found = cast("tuple[object, ...]", self.value(value, depth))
        return UNKNOWN if isinstance(found, Unknown) else found[index]


def enclosing_function(
    tree: ast.Module, line: int
) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The outermost function around a 1-based line."""
    pending: list[ast.stmt] = list(tree.body)
    while pending:
        node = pending.pop(0)
        if not node.lineno <= line <= (node.end_lineno or node.lineno):
            continue
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return node
        pending = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]
    return None


def parameter_default(
    function: ast.FunctionDef | ast.AsyncFunctionDef, name: str
) -> ast.expr | None:
    """The default of a parameter."""
    listed = function.args
    positional = [*listed.posonlyargs, *listed.args]
    first = len(positional) - len(listed.defaults)
    for index, argument in enumerate(positional):
        if argument.arg == name:
            return listed.defaults[index - first] if index >= first else None
    for argument, default in zip(listed.kwonlyargs, listed.kw_defaults, strict=True):
        if argument.arg == name:
            return default
    return None


def annotation_of(function: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> str | None:
    """The text of a parameter's annotation."""
    listed = function.args
    for argument in (*listed.posonlyargs, *listed.args, *listed.kwonlyargs):
        if argument.arg == name and argument.annotation is not None:
            return ast.unparse(argument.annotation).strip("'\"")
    return None


def _has(function: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> bool:
    listed = function.args
    return any(a.arg == name for a in (*listed.posonlyargs, *listed.args, *listed.kwonlyargs))


def _mentions(value: ast.expr, name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(value))


def _is_tensor(annotation: str | None) -> bool:
    return annotation is not None and annotation.rpartition(".")[2] == "Tensor"


def _position(target: ast.expr, name: str) -> tuple[int | None] | None:
    """Where a target binds a name: as a whole, or by an index of a tuple."""
    if isinstance(target, ast.Name) and target.id == name:
        return (None,)
    if isinstance(target, (ast.Tuple, ast.List)):
        for index, part in enumerate(target.elts):
            if isinstance(part, ast.Name) and part.id == name:
                return (index,)
    return None


def _statements(body: list[ast.stmt]) -> list[ast.stmt]:
    """Module-level statements, also those under ``if`` and ``try``."""
    found: list[ast.stmt] = []
    for node in body:
        found.append(node)
        if isinstance(node, (ast.If, ast.Try)):
            handlers = node.handlers if isinstance(node, ast.Try) else []
            inner = [*node.body, *node.orelse, *(s for h in handlers for s in h.body)]
            found.extend(_statements(inner))
    return found


def _targets(node: ast.stmt) -> list[tuple[str, ast.expr | None]]:
    if isinstance(node, ast.Assign):
        return [(t.id, node.value) for t in node.targets if isinstance(t, ast.Name)]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [(node.target.id, node.value)]
    return []


def _literal(_scope: HostScope, node: ast.Constant, _depth: int) -> object:
    return node.value


def _named(scope: HostScope, node: ast.Name, depth: int) -> object:
    return scope.name(node.id, depth)


def _attribute(scope: HostScope, node: ast.Attribute, depth: int) -> object:
    if node.attr in DATA_TYPES and isinstance(node.value, ast.Name):
        return Symbol(f"tl.{node.attr}")
    if node.attr == "value":
        return scope.value(node.value, depth)
    if isinstance(node.value, ast.Name):
        return scope.class_constant(node.value.id, node.attr, depth)
    return UNKNOWN


def _unary(scope: HostScope, node: ast.UnaryOp, depth: int) -> object:
    inner: Any = scope.value(node.operand, depth)
    if isinstance(inner, (Unknown, Symbol, Given)):
        return UNKNOWN
    if isinstance(node.op, ast.Not):
        return not inner
    return -inner if isinstance(node.op, ast.USub) else UNKNOWN


def _binary(scope: HostScope, node: ast.BinOp, depth: int) -> object:
    left: Any = scope.value(node.left, depth)
    right: Any = scope.value(node.right, depth)
    rule = _BINARY.get(type(node.op))
    if rule is None or not isinstance(left, (int, float)) or not isinstance(right, (int, float)):
        return UNKNOWN
    if isinstance(node.op, (ast.Pow, ast.LShift)) and abs(right) > _LARGEST_POWER:
        return UNKNOWN
    return rule(left, right)


def _boolean(scope: HostScope, node: ast.BoolOp, depth: int) -> object:
    stops = isinstance(node.op, ast.Or)
    result: object = not stops
    for part in node.values:
        found = scope.value(part, depth)
        if isinstance(found, Unknown):
            result = UNKNOWN
        elif isinstance(found, Given) or bool(found) == stops:
            if isinstance(found, Given) and not stops:
                continue
            return found
        elif not isinstance(result, Unknown):
            result = found
    return result


def _compare(scope: HostScope, node: ast.Compare, depth: int) -> object:
    if len(node.ops) != 1:
        return UNKNOWN
    left, right = scope.value(node.left, depth), scope.value(node.comparators[0], depth)
    if isinstance(left, Unknown) or isinstance(right, Unknown):
        return UNKNOWN
    if isinstance(left, Given) and right is not None:
        return UNKNOWN
    return _COMPARED[type(node.ops[0])](left, right)


def _choice(scope: HostScope, node: ast.IfExp, depth: int) -> object:
    test = scope.value(node.test, depth)
    if isinstance(test, Unknown):
        found = scope.value(node.body, depth)
        return scope.value(node.orelse, depth) if isinstance(found, Unknown) else found
    return scope.value(node.body if test else node.orelse, depth)


def _sequence(scope: HostScope, node: ast.Tuple | ast.List, depth: int) -> object:
    return tuple(scope.value(part, depth) for part in node.elts)


def _mapping(scope: HostScope, node: ast.Dict, depth: int) -> object:
    return {
        scope.value(key, depth): scope.value(value, depth)
        for key, value in zip(node.keys, node.values, strict=True)
        if key is not None
    }


def _item(scope: HostScope, node: ast.Subscript, depth: int) -> object:
    base: Any = scope.value(node.value, depth)
    index: Any = scope.value(node.slice, depth)
    return UNKNOWN if isinstance(index, Unknown) else base[index]


def _call(scope: HostScope, node: ast.Call, depth: int) -> object:
    name = called_name(node.func)
    if name == "get" and isinstance(node.func, ast.Attribute) and node.args:
        base: Any = scope.value(node.func.value, depth)
        return base[scope.value(node.args[0], depth)]
    values: list[Any] = [scope.value(argument, depth) for argument in node.args]
    rule = _CALLS.get(name)
    if rule is None or any(isinstance(v, (Unknown, Symbol, Given)) for v in values):
        return values[0] if name == "constexpr" and values else UNKNOWN
    return rule(*values)


def next_power_of_two(number: int) -> int:
    """The least power of two that is not below ``number``."""
    return 1 << max(int(number) - 1, 0).bit_length()


def _rounded_up(numerator: int, denominator: int) -> int:
    return -(-numerator // denominator)


def _itself(value: object) -> object:
    return value


def _numbers(*bounds: int) -> tuple[int, ...]:
    return tuple(range(*bounds)[:_LONGEST_RANGE])


_CALLS: dict[str, Callable[..., Any]] = {
    "next_power_of_2": next_power_of_two,
    "cdiv": _rounded_up,
    "min": min, "max": max, "int": int, "float": float, "bool": bool, "abs": abs, "len": len,
    "constexpr": _itself, "dict": dict, "tuple": tuple, "list": tuple, "range": _numbers,
}  # fmt: skip

_RULES: dict[type[ast.expr], Callable[[HostScope, Any, int], object]] = {
    ast.Constant: _literal,
    ast.Name: _named,
    ast.Attribute: _attribute,
    ast.UnaryOp: _unary,
    ast.BinOp: _binary,
    ast.BoolOp: _boolean,
    ast.Compare: _compare,
    ast.IfExp: _choice,
    ast.Tuple: _sequence,
    ast.List: _sequence,
    ast.Dict: _mapping,
    ast.Subscript: _item,
    ast.Call: _call,
}
