"""What the entry's expressions are worth in the main case: sizes, strides, grids."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

from search_engine.domain.workload import TensorArgument
from search_engine.rules._base import Subject


@dataclass(frozen=True, slots=True)
class HostTensor:
    """Sizes and strides of a tensor, in elements."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]


Value: TypeAlias = "int | float | HostTensor | tuple[Value, ...]"


class _UnknownValueError(Exception):
    """An expression that cannot be read."""


class HostValues:
    """Evaluates expressions of an entry without running it. Unknown is None, never a guess."""

    def __init__(
        self, subject: Subject, launch_arguments: dict[str, ast.expr], meta: str | None
    ) -> None:
        self._entry = subject.entry_node
        self._meta = meta
        self._launch_arguments = launch_arguments
        self._names: dict[str, Value] = {}
        self._bindings: dict[str, list[ast.expr | None]] = {}
        self._read_constants(subject.tree)
        self._read_arguments(subject)
        self._read_body()

    def value(self, node: ast.expr) -> Value | None:
        """The value of an expression in the main case."""
        try:
            return self._eval(node)
        except _UnknownValueError:
            return None

    def integer(self, node: ast.expr) -> int | None:
        """The value, if it is an integer."""
        found = self.value(node)
        return found if isinstance(found, int) else None

    def tensor(self, node: ast.expr) -> HostTensor | None:
        """The value, if it is a tensor."""
        found = self.value(node)
        return found if isinstance(found, HostTensor) else None

    def single_binding(self, name: str) -> ast.expr | None:
        """What the entry assigns to a name, if it does so exactly once."""
        found = self._bindings.get(name, [])
        return found[0] if len(found) == 1 else None

    def _read_constants(self, tree: ast.Module) -> None:
        for statement in tree.body:
            if isinstance(statement, ast.Assign):
                self._assign(statement.targets, statement.value)

    def _read_arguments(self, subject: Subject) -> None:
        arguments = self._entry.args
        named = [*arguments.posonlyargs, *arguments.args]
        tail = named[len(named) - len(arguments.defaults) :]
        for argument, default in zip(tail, arguments.defaults, strict=True):
            self._bind(argument.arg, self.value(default))
        for item in subject.main_case.arguments:
            if isinstance(item, TensorArgument):
                strides = item.strides or _contiguous(item.shape)
                self._names[item.name] = HostTensor(item.shape, strides)
            else:
                self._bind(item.name, self._literal(item.expression))

    def _read_body(self) -> None:
        for node in ast.walk(self._entry):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    self._note(target, node.value)
            elif isinstance(node, (ast.AugAssign, ast.For, ast.AnnAssign)):
                self._note(node.target, node.value if isinstance(node, ast.AnnAssign) else None)
        for statement in self._entry.body:
            if isinstance(statement, ast.Assign):
                self._assign(statement.targets, statement.value)
            elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
                self._assign([statement.target], statement.value)
            elif isinstance(statement, (ast.For, ast.While, ast.If, ast.With, ast.AugAssign)):
                self._forget(statement)

    def _forget(self, statement: ast.stmt) -> None:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                self._names.pop(node.id, None)

    def _note(self, target: ast.expr, value: ast.expr | None) -> None:
        if isinstance(target, ast.Name):
            self._bindings.setdefault(target.id, []).append(value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            for item in target.elts:
                self._note(item, None)

    def _assign(self, targets: list[ast.expr], value: ast.expr) -> None:
        found = self.value(value)
        for target in targets:
            if isinstance(target, ast.Name):
                self._bind(target.id, found)
            elif isinstance(target, (ast.Tuple, ast.List)):
                parts = found if isinstance(found, tuple) else ()
                for position, item in enumerate(target.elts):
                    known = len(parts) == len(target.elts)
                    if isinstance(item, ast.Name):
                        self._bind(item.id, parts[position] if known else None)

    def _bind(self, name: str, value: Value | None) -> None:
        if value is None:
            self._names.pop(name, None)
        else:
            self._names[name] = value

    def _literal(self, text: str) -> Value | None:
        try:
            return self.value(ast.parse(text, mode="eval").body)
        except SyntaxError:
            return None

    def _eval(self, node: ast.expr) -> Value:
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
            return node.value
        if isinstance(node, ast.Name) and node.id in self._names:
            return self._names[node.id]
        if isinstance(node, (ast.Tuple, ast.List)):
            return tuple(self._eval(item) for item in node.elts)
        if isinstance(node, ast.BinOp):
            return self._binary(node)
        if isinstance(node, ast.Subscript):
            return self._subscript(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -self._number(node.operand)
        if isinstance(node, ast.Attribute):
            return self._attribute(self._eval(node.value), node.attr)
        if isinstance(node, ast.Call):
            return self._call(node)
        raise _UnknownValueError

    def _number(self, node: ast.expr) -> int:
        value = self._eval(node)
        if not isinstance(value, int):
            raise _UnknownValueError
        return value

    def _binary(self, node: ast.BinOp) -> Value:
        left, right = self._number(node.left), self._number(node.right)
        if isinstance(node.op, ast.Add):
            return left + right
        if isinstance(node.op, ast.Sub):
            return left - right
        if isinstance(node.op, ast.Mult):
            return left * right
        if isinstance(node.op, ast.FloorDiv) and right:
            return left // right
        if isinstance(node.op, ast.Mod) and right:
            return left % right
        if isinstance(node.op, ast.Pow) and 0 <= right < 64:
            return int(left**right)
        raise _UnknownValueError

    def _subscript(self, node: ast.Subscript) -> Value:
        if isinstance(node.value, ast.Name) and node.value.id == self._meta:
            if isinstance(node.slice, ast.Constant):
                argument = self._launch_arguments.get(str(node.slice.value))
                if argument is not None:
                    return self._eval(argument)
            raise _UnknownValueError
        value, index = self._eval(node.value), self._number(node.slice)
        if not isinstance(value, tuple) or not -len(value) <= index < len(value):
            raise _UnknownValueError
        return value[index]

    def _attribute(self, value: Value, name: str) -> Value:
        if isinstance(value, HostTensor):
            if name == "shape":
                return value.shape
            if name == "ndim":
                return len(value.shape)
            if name in ("T", "mT") and len(value.shape) == 2:
                return HostTensor(value.shape[::-1], value.strides[::-1])
        raise _UnknownValueError

    def _call(self, node: ast.Call) -> Value:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        name = node.func.id if isinstance(node.func, ast.Name) else name
        if name in ("cdiv", "next_power_of_2", "min", "max", "len", "int"):
            return _arithmetic(name, tuple(self._eval(item) for item in node.args))
        if name in ("empty", "zeros", "ones", "full", "new_empty", "new_zeros"):
            return self._allocation(name, node)
        if name in ("empty_like", "zeros_like"):
            value = self._eval(node.args[0])
            return value if isinstance(value, HostTensor) else self._fail()
        if isinstance(node.func, ast.Attribute):
            arguments = tuple(self._eval(item) for item in node.args)
            return _method(self._eval(node.func.value), name, arguments)
        raise _UnknownValueError

    def _allocation(self, name: str, node: ast.Call) -> Value:
        values = tuple(self._eval(item) for item in node.args)
        if name == "full":
            values = values[:1]
        sizes = values[0] if len(values) == 1 and isinstance(values[0], tuple) else values
        shape = tuple(item for item in sizes if isinstance(item, int))
        if len(shape) != len(sizes) or not shape:
            raise _UnknownValueError
        return HostTensor(shape, _contiguous(shape))

    def _fail(self) -> Value:
        raise _UnknownValueError


def _contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))


def _arithmetic(name: str, values: tuple[Value, ...]) -> Value:
    if name == "len" and len(values) == 1 and isinstance(values[0], tuple):
        return len(values[0])
    if name == "len" and len(values) == 1 and isinstance(values[0], HostTensor):
        return values[0].shape[0]
    numbers = tuple(value for value in values if isinstance(value, int))
    if len(numbers) != len(values) or not numbers:
        raise _UnknownValueError
    if name == "cdiv" and len(numbers) == 2 and numbers[1]:
        return -(-numbers[0] // numbers[1])
    if name == "next_power_of_2":
        return 1 << max(numbers[0] - 1, 0).bit_length()
    if name in ("min", "max"):
        return min(numbers) if name == "min" else max(numbers)
    return numbers[0]


def _method(value: Value, name: str, arguments: tuple[Value, ...]) -> Value:
    if not isinstance(value, HostTensor):
        raise _UnknownValueError
    index = arguments[0] if arguments else None
    if name in ("stride", "size"):
        parts = value.strides if name == "stride" else value.shape
        if index is None:
            return parts
        if isinstance(index, int) and -len(parts) <= index < len(parts):
            return parts[index]
    if name in ("numel", "nelement"):
        return prod(value.shape)
    if name in ("dim", "ndimension"):
        return len(value.shape)
    if name in ("contiguous", "to", "float", "detach", "clone"):
        strides = _contiguous(value.shape) if name == "contiguous" else value.strides
        return HostTensor(value.shape, strides)
    if name in ("flatten", "ravel") or (name in ("view", "reshape") and arguments == (-1,)):
        return HostTensor((prod(value.shape),), (1,))
    raise _UnknownValueError
