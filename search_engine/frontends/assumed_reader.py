"""Reads a kernel's syntax tree in order and notes how each parameter is used.

Helpers are followed with the values of the call. Both sides of an ``if`` are read and what they
assign is united; loop bodies are read twice, so that a pointer that moves at the end of an
iteration is known at its beginning.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from search_engine.frontends.assumed_calls import (
    RULES,
    called_name,
    constants_of,
    converted,
    library_call,
    note_shape,
)
from search_engine.frontends.assumed_uses import (
    INTEGER,
    NOTHING,
    Evidence,
    KernelUses,
    NamedConstant,
    Value,
    joined_kind,
    parameter_value,
    together,
    total,
    union,
)

_DEEPEST_CALL = 6
_MOST_STEPS = 40_000
"""Expressions read of one kernel: loops in helpers in loops multiply."""


def read_kernel(
    function: ast.FunctionDef, constants: frozenset[str], helpers: dict[str, ast.FunctionDef]
) -> KernelUses:
    """Note the uses of every parameter. ``constants`` are the ``tl.constexpr`` ones."""
    reader = _Reader(helpers)
    scope = {
        name: Value(constant=name) if name in constants else parameter_value(name)
        for name in parameter_names(function)
    }
    reader.block(function.body, scope)
    for name, load in reader.uses.scaled:
        whole = reader.uses.accesses[load].evidence & {Evidence.INDEX, Evidence.INTEGER}
        reader.uses.parameter(name, Evidence.INTEGER if whole else Evidence.FLOAT)
    return reader.uses


def parameter_names(function: ast.FunctionDef) -> list[str]:
    """Names of all parameters that take one argument."""
    listed = function.args
    return [item.arg for item in (*listed.posonlyargs, *listed.args, *listed.kwonlyargs)]


class _Reader:
    def __init__(self, helpers: dict[str, ast.FunctionDef]) -> None:
        self.uses = KernelUses()
        self._helpers = helpers
        self._steps = 0
        self._returned: list[list[Value]] = []
        """Values returned so far by the helpers that are being followed, innermost last."""

    def block(self, body: list[ast.stmt], scope: dict[str, Value]) -> None:
        """Read statements; ``scope`` holds the values of names and is changed."""
        for statement in body:
            self._statement(statement, scope)

    def value(self, node: ast.expr, scope: dict[str, Value]) -> Value:
        """What is known about an expression; its accesses are noted."""
        self._steps += 1
        if self._steps > _MOST_STEPS:
            return NOTHING
        match node:
            case ast.Name(id=name):
                return scope.get(name, NOTHING)
            case ast.Constant(value=literal):
                return Value(kind=_KINDS.get(type(literal)))
            case ast.Call():
                return self._call(node, scope)
            case ast.BinOp(left=left, op=operator, right=right):
                return self._binary(self.value(left, scope), operator, self.value(right, scope))
            case ast.Attribute():
                return self._attribute(node, scope)
            case ast.Subscript():
                return self._subscript(node, scope)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                return together(tuple(self.value(part, scope) for part in parts))
            case _:
                return self._operator(node, scope)

    def _statement(self, node: ast.stmt, scope: dict[str, Value]) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                found = self.value(value, scope)
                for target in targets:
                    _bind(target, found, scope)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                _bind(target, self.value(value, scope), scope)
            case ast.AugAssign(target=ast.Name(id=name), op=operator, value=value):
                left = scope.get(name, NOTHING)
                scope[name] = self._binary(left, operator, self.value(value, scope))
            case ast.Expr(value=value):
                self.value(value, scope)
            case ast.Return(value=ast.expr() as value):
                found = self.value(value, scope)
                if self._returned:
                    self._returned[-1].append(found)
            case ast.Assert(test=test):
                self.value(test, scope)
            case _:
                self._compound(node, scope)

    def _compound(self, node: ast.stmt, scope: dict[str, Value]) -> None:
        match node:
            case ast.If(test=test, body=body, orelse=other):
                self._condition(test, scope)
                second = dict(scope)
                self.block(body, scope)
                self.block(other, second)
                _unite(scope, second)
            case ast.For(target=target, iter=bounds, body=body):
                self.value(bounds, scope)
                _bind(target, INTEGER, scope)
                self._loop(body, scope)
            case ast.While(test=test, body=body):
                self._condition(test, scope)
                self._loop(body, scope)
            case ast.With(body=body):
                self.block(body, scope)
            case _:
                pass

    def _loop(self, body: list[ast.stmt], scope: dict[str, Value]) -> None:
        before = dict(scope)
        self.block(body, scope)
        _unite(scope, before)
        self.block(body, scope)

    def _condition(self, node: ast.expr, scope: dict[str, Value]) -> None:
        """A test: constants in it are flags, loaded data in it is a condition."""
        match node:
            case ast.BoolOp(values=parts):
                for part in parts:
                    self._condition(part, scope)
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                self._condition(inner, scope)
            case _:
                found = self.value(node, scope)
                if found.constant is not None:
                    self.uses.constant(found.constant).flag = True
                self.uses.data(found, Evidence.CONDITION)

    def _operator(self, node: ast.expr, scope: dict[str, Value]) -> Value:
        match node:
            case ast.Compare():
                return self._compare(node, scope)
            case ast.UnaryOp(op=ast.Not()) | ast.BoolOp():
                self._condition(node, scope)
                return Value(kind="bool")
            case ast.UnaryOp(op=operator, operand=inner):
                found = self.value(inner, scope)
                if isinstance(operator, ast.Invert):
                    self.uses.data(found, Evidence.CONDITION)
                return replace(found.computed(), made_of=constants_of(found))
            case ast.IfExp(test=test, body=body, orelse=other):
                self._condition(test, scope)
                return union(self.value(body, scope), self.value(other, scope))
            case _:
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.expr):
                        self.value(child, scope)
                return NOTHING

    def _attribute(self, node: ast.Attribute, scope: dict[str, Value]) -> Value:
        found = self.value(node.value, scope)
        if node.attr in ("T", "value"):
            return found
        inner = node.value
        if node.attr == "element_ty" and isinstance(inner, ast.Attribute):
            for name in self.value(inner.value, scope).addends[:1]:
                self.uses.parameter(name, Evidence.POINTER)
        return NOTHING

    def _subscript(self, node: ast.Subscript, scope: dict[str, Value]) -> Value:
        found = self.value(node.value, scope)
        index = node.slice
        if found.items and isinstance(index, ast.Constant) and isinstance(index.value, int):
            return found.items[index.value % len(found.items)]
        if isinstance(index, ast.Constant) and isinstance(index.value, int):
            self._note_tuple(found)
        return replace(found, axes=_indexed(found.axes, index)) if found.axes else found

    def _note_tuple(self, value: Value) -> None:
        if value == parameter_value(value.addends[0] if value.addends else ""):
            self.uses.tuples.update(value.addends)

    def _binary(self, left: Value, operator: ast.operator, right: Value) -> Value:
        result = self._computed(left, operator, right)
        for name in set(result.axes) - {""}:
            if result.axes.count(name) > 1:
                self.uses.constant(name).square = True
        if _is_constant(left) and _is_constant(right):
            made = (*constants_of(left), *constants_of(right))
            return replace(result, made_of=tuple(dict.fromkeys(made)))
        return result

    def _computed(self, left: Value, operator: ast.operator, right: Value) -> Value:
        uses = self.uses
        for value in (left, right):
            if value.constant is not None:
                uses.constant(value.constant).arithmetic = True
        kind = joined_kind(left.kind, right.kind)
        match operator:
            case ast.Add() | ast.Sub():
                self._beside_float(left, right)
                return replace(total(left, right), direct=False, dtype=None, kind=kind)
            case ast.Div() | ast.Pow():
                uses.number(left, Evidence.FLOAT)
                kind = "float"
            case ast.FloorDiv() | ast.Mod():
                for value in (left, right):
                    uses.number(value, Evidence.INTEGER)
                    uses.data(value, Evidence.INTEGER)
                kind = "int"
            case ast.LShift() | ast.RShift():
                uses.data(left, Evidence.BITS)
                uses.data(right, Evidence.BITS)
                kind = "int"
            case ast.BitAnd() | ast.BitOr() | ast.BitXor():
                evidence = Evidence.BITS if "int" in (left.kind, right.kind) else Evidence.CONDITION
                uses.data(left, evidence)
                uses.data(right, evidence)
            case _:
                self._product(left, right)
        return union(left.computed(kind), right.computed(kind))

    def _beside_float(self, left: Value, right: Value) -> None:
        """What is added to a float (``variance + eps``) is a float."""
        for one, other in ((left, right), (right, left)):
            if one.kind == "float" and not other.kind:
                self.uses.number(other, Evidence.FLOAT)

    def _product(self, left: Value, right: Value) -> None:
        for one, other in ((left, right), (right, left)):
            if one.block and len(other.addends) == 1:
                self.uses.parameter(other.addends[0], Evidence.SPREAD)
            if one.block and other.constant is not None:
                self.uses.parameter(other.constant, Evidence.SPREAD)
            if one.kind == "float":
                self.uses.number(other, Evidence.FLOAT)
            elif one.kind == "int" or one.addends or one.constant is not None:
                self.uses.number(other, Evidence.INTEGER)
            elif one.direct and len(other.addends) == 1:
                self.uses.scaled.extend((other.addends[0], load) for load in one.loads)

    def _compare(self, node: ast.Compare, scope: dict[str, Value]) -> Value:
        parts = (node.left, *node.comparators)
        values = [self.value(part, scope) for part in parts]
        literals: list[object] = [_literal(part, scope) for part in node.comparators]
        if any(isinstance(operator, (ast.Is, ast.IsNot)) for operator in node.ops):
            self.uses.optional.update(values[0].addends[:1])
        for value in values:
            if value.constant is not None:
                use = self.uses.constant(value.constant)
                use.compared.extend(item for item in literals if item is not _UNKNOWN)
        if literals != [_UNKNOWN]:  # `x == 0` says nothing about the type of x
            return Value(kind="bool")
        evidence = Evidence.FLOAT if any(v.kind == "float" for v in values) else Evidence.INTEGER
        for value in values:
            self.uses.number(value, evidence)
            if any(other.kind == "int" and not other.loads for other in values):
                self.uses.data(value, Evidence.INTEGER)
        return Value(kind="bool")

    def _call(self, node: ast.Call, scope: dict[str, Value]) -> Value:
        name = called_name(node.func)
        if isinstance(node.func, ast.Name):
            callee = scope.get(node.func.id, NOTHING)
            if callee.constant is not None:
                self.uses.constant(callee.constant).called = True
        base = self._base(node.func, scope)
        if base is not None and base.kind != "module":
            return self._method(base, name, node, scope)
        if name in self._helpers:
            return self._helper(self._helpers[name], node, scope)
        if name in RULES:
            return RULES[name](self, node, scope)
        given = (*node.args, *(item.value for item in node.keywords))
        values = tuple(self.value(item, scope) for item in given)
        if name == "len":
            self._note_tuple(values[0] if values else NOTHING)
        return library_call(self, name, values)

    def _base(self, function: ast.expr, scope: dict[str, Value]) -> Value | None:
        """The object of a method call; None for a function or a function of a module."""
        if not isinstance(function, ast.Attribute):
            return None
        root = function.value
        while isinstance(root, ast.Attribute):
            root = root.value
        if isinstance(root, ast.Name) and root.id not in scope:
            return None
        return self.value(function.value, scope)

    def _method(self, base: Value, name: str, node: ast.Call, scope: dict[str, Value]) -> Value:
        if name in ("to", "cast"):
            return converted(self, base, node, scope)
        if name in ("load", "store", "gather", "scatter") and base.addends:
            return self._through_descriptor(base, name, node, scope)
        if name in ("reshape", "view", "broadcast_to"):
            note_shape(self, node.args, scope)
            return replace(base, constant=None)
        values = (base, *(self.value(argument, scope) for argument in node.args))
        return library_call(self, name, values)

    def _through_descriptor(
        self, base: Value, name: str, node: ast.Call, scope: dict[str, Value]
    ) -> Value:
        values = [self.value(argument, scope) for argument in node.args]
        if base.kind != "descriptor":
            self.uses.descriptors.update(base.addends[:1])
        index = self.uses.access(node, base)
        if name in ("store", "scatter") and len(values) > 1:
            self.uses.stored(index, values[-1])
        return Value(loads=frozenset({index}), direct=True)

    def _helper(self, function: ast.FunctionDef, node: ast.Call, scope: dict[str, Value]) -> Value:
        values = tuple(self.value(argument, scope) for argument in node.args)
        named = {item.arg: self.value(item.value, scope) for item in node.keywords if item.arg}
        if len(self._returned) >= _DEEPEST_CALL:
            return together((*values, *named.values())).computed()
        inner = dict(zip(parameter_names(function), values, strict=False))
        inner.update(named)
        self._returned.append([])
        self.block(function.body, inner)
        returned = self._returned.pop()
        result = returned[0] if returned else NOTHING
        for other in returned[1:]:
            result = union(result, other)
        return result


def _is_constant(value: Value) -> bool:
    """True for a constant, a literal, and what is computed from them."""
    plain = value == Value(kind="int") or value == Value(kind="float")
    return plain or bool(constants_of(value))


def _indexed(axes: tuple[str, ...], index: ast.expr) -> tuple[str, ...]:
    """Axes after ``[:, None]``."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    rest = iter(axes)
    found: list[str] = []
    for part in parts:
        if isinstance(part, ast.Slice):
            found.append(next(rest, ""))
        elif isinstance(part, ast.Constant) and part.value is None:
            found.append("")
        else:
            return ()
    return (*found, *rest)


_KINDS: dict[type, str] = {int: "int", float: "float", bool: "bool"}
_UNKNOWN = object()


def _literal(node: ast.expr, scope: dict[str, Value]) -> object:
    """A literal, or a constant of the module such as ``_MODE_LLAMA``."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name) and node.id not in scope:
        return NamedConstant(node.id)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _literal(node.operand, scope)
        return -inner if isinstance(inner, (int, float)) else _UNKNOWN
    return _UNKNOWN


def _bind(target: ast.expr, value: Value, scope: dict[str, Value]) -> None:
    if isinstance(target, ast.Name):
        scope[target.id] = value
    elif isinstance(target, (ast.Tuple, ast.List)):
        items = value.items if len(value.items) == len(target.elts) else ()
        for index, part in enumerate(target.elts):
            _bind(part, items[index] if items else value.computed(), scope)


def _unite(scope: dict[str, Value], other: dict[str, Value]) -> None:
    for name, value in other.items():
        scope[name] = union(scope[name], value) if name in scope and scope[name] != value else value
