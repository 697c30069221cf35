"""Where a number that a host function passes comes from: a size, a stride, a count, a scalar.

Read from the syntax of the function alone. A name that is bound more than once, or to something
that is not understood, has no origin; values that are bounded (a power of two above a size, a
remainder, a comparison, a minimum) have none either.
"""

from __future__ import annotations

import ast
import dataclasses
import enum
from collections.abc import Iterator
from dataclasses import dataclass

from search_engine.findings._source import called_name

_PASSED_ON = frozenset({"int", "cdiv", "ceil", "max", "abs", "contiguous", "item"})
_LARGE = 1024
"""Sizes in steps of this many have few values."""
_ALLOCATES = frozenset({"empty", "zeros", "ones", "full", "new_empty", "new_zeros", "new_full"})


class OriginKind(enum.Enum):
    """What of a tensor a number is."""

    SIZE = "size"
    STRIDE = "stride"
    COUNT = "count"
    """All its elements, or its length."""
    SCALAR = "scalar"
    """A parameter of the host function that is a number."""


@dataclass(frozen=True, slots=True)
class Origin:
    """One thing that a number depends on. ``text`` is as a person writes it: ``x.shape[0]``.

    ``source`` is the name of the tensor or scalar. ``dimension`` counts from the front where the
    rank is known, else it is as written; ``name`` is the local name that the host gives the size.
    """

    kind: OriginKind
    text: str
    source: str
    dimension: int | None = None
    rank: int | None = None
    name: str | None = None


class HostOrigins:
    """Reads one host function once."""

    def __init__(self, function: ast.FunctionDef) -> None:
        arguments = function.args
        every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
        switches = _switches(function.args)
        self._parameters = {item.arg for item in every} - switches
        self._bound: dict[str, list[_Binding]] = {}
        self.ranks: dict[str, int] = {}
        """Dimensions of a tensor, where unpacking or an index shows them."""
        self.names: dict[str, tuple[str, ...]] = {}
        """Names that a tensor's sizes are unpacked to."""
        for node in ast.walk(function):
            self._read(node)

    def of(self, node: ast.expr) -> tuple[Origin, ...]:
        """What an expression depends on, each once."""
        return tuple(dict.fromkeys(self._of(node, frozenset())))

    def written(self, node: ast.expr) -> str:
        """An expression as it is computed: what a name is bound to, if it is bound once."""
        found = self._bound.get(node.id, []) if isinstance(node, ast.Name) else []
        if len(found) == 1 and found[0].position is None and found[0].value is not None:
            return ast.unparse(found[0].value)
        return ast.unparse(node)

    def allocation(self, tensor: str) -> tuple[ast.expr, ...] | None:
        """The sizes of a tensor that the function allocates itself, contiguous."""
        found = self._bound.get(tensor, [])
        value = found[0].value if len(found) == 1 and found[0].position is None else None
        if not isinstance(value, ast.Call) or called_name(value) not in _ALLOCATES:
            return None
        if value.args and isinstance(value.args[0], ast.Tuple | ast.List):
            return tuple(value.args[0].elts)
        return tuple(value.args) if len(value.args) > 1 else None

    def _read(self, node: ast.AST) -> None:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._bind(target, node.value)
        elif isinstance(node, ast.AnnAssign):
            self._bind(node.target, node.value)
        elif isinstance(node, ast.AugAssign | ast.For | ast.NamedExpr | ast.comprehension):
            self._bind(node.target, None)
        elif isinstance(node, ast.Subscript | ast.Call):
            found = _form(node)
            if found is not None and found.dimension is not None and found.dimension >= 0:
                known = self.ranks.get(found.source, 0)
                self.ranks[found.source] = max(known, found.dimension + 1)

    def _bind(self, target: ast.expr, value: ast.expr | None) -> None:
        if isinstance(target, ast.Name):
            self._bound.setdefault(target.id, []).append(_Binding(value, None, None))
        elif isinstance(target, ast.Tuple | ast.List):
            count = len(target.elts)
            fixed = not any(isinstance(item, ast.Starred) for item in target.elts)
            parts = value.elts if isinstance(value, ast.Tuple) else []
            for position, item in enumerate(target.elts):
                inner = item.value if isinstance(item, ast.Starred) else item
                if len(parts) == count and fixed:
                    self._bind(inner, parts[position])
                elif isinstance(inner, ast.Name):
                    part = _Binding(value, position if fixed else None, count if fixed else None)
                    self._bound.setdefault(inner.id, []).append(part)
            tensor = _whole_shape(value) if fixed else None
            if tensor is not None:
                self.ranks[tensor] = max(count, self.ranks.get(tensor, 0))
                self.names[tensor] = tuple(ast.unparse(item) for item in target.elts)

    def _of(self, node: ast.expr, seen: frozenset[str]) -> Iterator[Origin]:
        form = _form(node)
        if form is not None:
            yield self._ranked(form)
        elif isinstance(node, ast.Name):
            yield from self._named(node.id, seen)
        elif isinstance(node, ast.BinOp) and isinstance(
            node.op, ast.Add | ast.Sub | ast.Mult | ast.FloorDiv
        ):
            right = tuple(self._of(node.right, seen))
            divides = isinstance(node.op, ast.FloorDiv)
            if divides and _is_large(node.right):
                return
            if not (divides and any(item.dimension == 0 for item in right)):
                # All elements over the rows are the columns, which stay.
                yield from self._of(node.left, seen)
                yield from right
        elif isinstance(node, ast.IfExp):
            yield from self._of(node.body, seen)
            yield from self._of(node.orelse, seen)
        elif isinstance(node, ast.Call) and called_name(node) in _PASSED_ON:
            for item in () if _is_large(node.args[-1] if node.args else node) else node.args:
                yield from self._of(item, seen)

    def _named(self, name: str, seen: frozenset[str]) -> Iterator[Origin]:
        found = self._bound.get(name, [])
        if not found and name in self._parameters:
            yield Origin(OriginKind.SCALAR, name, name, name=name)
        if len(found) != 1 or name in seen or found[0].value is None:
            return
        binding = found[0]
        tensor = _whole_shape(binding.value)
        if binding.position is None and binding.count is None and binding.value is not None:
            for origin in self._of(binding.value, seen | {name}):
                direct = _form(binding.value) is not None and origin.name is None
                yield dataclasses.replace(origin, name=name) if direct else origin
        elif tensor is not None and binding.position is not None:
            yield Origin(
                OriginKind.SIZE,
                f"{tensor}.shape[{binding.position}]",
                tensor,
                binding.position,
                binding.count,
                name,
            )

    def _ranked(self, origin: Origin) -> Origin:
        rank = self.ranks.get(origin.source)
        name = origin.name
        names = self.names.get(origin.source, ())
        if origin.kind is OriginKind.SIZE and origin.dimension is not None:
            index = origin.dimension
            name = names[index] if names and -len(names) <= index < len(names) else None
        return dataclasses.replace(origin, rank=rank, name=name)


@dataclass(frozen=True, slots=True)
class _Binding:
    """One assignment to a name; with a position if it is that part of an unpacked value."""

    value: ast.expr | None
    position: int | None
    count: int | None


def _switches(arguments: ast.arguments) -> set[str]:
    """Parameters that are true or false by their annotation or default."""
    named = [*arguments.posonlyargs, *arguments.args]
    defaults = [
        *zip(named[len(named) - len(arguments.defaults) :], arguments.defaults, strict=True),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    found = {
        item.arg
        for item, default in defaults
        if isinstance(default, ast.Constant) and isinstance(default.value, bool)
    }
    every = [*named, *arguments.kwonlyargs]
    return found | {
        item.arg for item in every if item.annotation and "bool" in ast.unparse(item.annotation)
    }


def _is_large(node: ast.expr) -> bool:
    """True for a divisor after which a size has few values: ``2048 * 32``."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return _is_large(node.left) or _is_large(node.right)
    return isinstance(node, ast.Constant) and isinstance(node.value, int) and node.value >= _LARGE


def _whole_shape(node: ast.expr | None) -> str | None:
    """``x`` for ``x.shape`` and ``x.size()``."""
    if isinstance(node, ast.Call) and called_name(node) == "size" and not node.args:
        node = node.func
    if isinstance(node, ast.Attribute) and node.attr in ("shape", "size"):
        return ast.unparse(node.value) if isinstance(node.value, ast.Name) else None
    return None


def _form(node: ast.expr) -> Origin | None:
    """``x.shape[0]``, ``x.size(0)``, ``x.stride(0)``, ``x.numel()``, ``len(x)``."""
    if isinstance(node, ast.Subscript):
        tensor = _whole_shape(node.value)
        return None if tensor is None else _indexed(OriginKind.SIZE, node, tensor, node.slice)
    if not isinstance(node, ast.Call):
        return None
    name = called_name(node)
    if name == "len" and len(node.args) == 1 and isinstance(node.args[0], ast.Name):
        return Origin(OriginKind.COUNT, ast.unparse(node), node.args[0].id)
    if not isinstance(node.func, ast.Attribute) or not isinstance(node.func.value, ast.Name):
        return None
    tensor = node.func.value.id
    if name == "numel" and not node.args:
        return Origin(OriginKind.COUNT, ast.unparse(node), tensor)
    if name in ("size", "stride") and len(node.args) == 1:
        kind = OriginKind.SIZE if name == "size" else OriginKind.STRIDE
        return _indexed(kind, node, tensor, node.args[0])
    return None


def _indexed(kind: OriginKind, node: ast.expr, tensor: str, index: ast.expr) -> Origin | None:
    try:
        value: object = ast.literal_eval(index)
    except ValueError:
        return None
    return Origin(kind, ast.unparse(node), tensor, value) if type(value) is int else None
