"""What the compiler can prove about every load and store of a kernel at one launch.

Walks the kernel's syntax with the launch's arguments as the compiler sees them: divisible by 16 or
not, constants by value. Helpers are followed into their bodies. What is not understood makes the
accesses that depend on it disappear, never wrong.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from search_engine.findings import _axes
from search_engine.findings._axes import Value
from search_engine.findings._source import called_name

_DEEPEST_CALL = 4
_MOST_PASSES = 6
"""Over a loop's body until what is carried round it stays the same; powers of two settle fast."""
_UNCHANGED = frozenset({"cast", "assume", "bitcast"})
_HINTS = frozenset({"multiple_of", "max_contiguous", "max_constancy"})
_SCALARS = frozenset({"program_id", "num_programs"})
_OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%",
    ast.LShift: "<<", ast.RShift: ">>", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Access:
    """One ``tl.load`` or ``tl.store``; ``mask`` is None for an access without one."""

    call: ast.Call
    store: bool
    pointer: Value
    mask: Value | None

    @property
    def elements(self) -> int:
        """Of the whole block."""
        total = 1
        for size in self.pointer.sizes:
            total *= size
        return total

    @property
    def axis(self) -> int:
        """The one along which lanes lie: of the longest runs, the last of equals."""
        axes = self.pointer.axes
        return max(range(len(axes)), key=lambda d: (axes[d].contiguity, d))

    @property
    def pointer_elements(self) -> int:
        """Neighbours that one access may cover, from the address alone."""
        along = self.pointer.axes[self.axis]
        return min(along.contiguity, max(1, along.divisibility // self.pointer.element_bytes))

    @property
    def mask_elements(self) -> int:
        """Neighbours that share one mask bit."""
        if self.mask is None or not self.mask.sizes:
            return self.elements
        return max(1, self.mask.axes[self.axis].constancy)

    def vector_bytes(self, lanes: int) -> int:
        """Bytes of one access of a thread, if ``lanes`` threads share the block."""
        size = self.pointer.element_bytes
        most = max(1, min(16 // size, self.elements // lanes))
        return size * min(most, self.pointer_elements, self.mask_elements)


@dataclass(slots=True)
class Surroundings:
    """What a kernel sees besides its arguments: functions of its file and names of constants."""

    functions: Mapping[str, ast.FunctionDef]
    globals: Mapping[str, object] = field(default_factory=dict[str, object])


def accesses_of(
    kernel: ast.FunctionDef,
    values: Mapping[str, Value],
    constants: Mapping[str, object],
    around: Surroundings,
) -> tuple[Access, ...]:
    """Every load and store of blocks that is understood, in source order."""
    walk = _Walk(around, {}, depth=0)
    walk.names.update(values)
    walk.constants.update(constants)
    walk.run(kernel.body)
    calls = sorted(walk.found, key=lambda call: (call.lineno, call.col_offset))
    return tuple(walk.found[call] for call in calls)


class _Walk:
    """Runs a function's statements over what is known of its names."""

    def __init__(self, around: Surroundings, found: dict[ast.Call, Access], *, depth: int) -> None:
        self.names: dict[str, Value] = {}
        self.constants: dict[str, object] = {}
        self.found = found
        self.result: tuple[Value | None, ...] | None = None
        self._around = around
        self._depth = depth
        for name, value in around.globals.items():
            self._bind_constant(name, value)

    def run(self, body: Iterable[ast.stmt]) -> None:
        """Statements in order."""
        for statement in body:
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Assign):
            values = self._values(node.value)
            for target in node.targets:
                self._bind(target, values, node.value)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            self._bind(node.target, self._values(node.value), node.value)
        elif isinstance(node, ast.AugAssign):
            self._augment(node)
        elif isinstance(node, ast.For):
            self._for(node)
        elif isinstance(node, ast.While):
            self._repeat(node.body)
        elif isinstance(node, ast.If):
            self._branch(node)
        elif isinstance(node, ast.Expr):
            self._expression(node.value)
        elif isinstance(node, ast.Return):
            self.result = self._values(node.value) if node.value is not None else ()

    def _expression(self, node: ast.expr) -> None:
        value = self._value(node)
        if called_name(node) not in _HINTS or not isinstance(node, ast.Call) or value is None:
            return
        first = node.args[0] if node.args else None
        if isinstance(first, ast.Name):
            self.names[first.id] = value  # a hint holds for the value wherever it is used

    def _bind(self, target: ast.expr, values: tuple[Value | None, ...], source: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self._set(target.id, values[0] if len(values) == 1 else None)
            known = self._constant(source)
            if known is not _UNKNOWN:
                self.constants[target.id] = known
            else:
                self.constants.pop(target.id, None)
        elif isinstance(target, ast.Tuple | ast.List):
            spread = values if len(values) == len(target.elts) else (None,) * len(target.elts)
            for item, value in zip(target.elts, spread, strict=True):
                if isinstance(item, ast.Name):
                    self._set(item.id, value)
                    self.constants.pop(item.id, None)

    def _set(self, name: str, value: Value | None) -> None:
        if value is None:
            self.names.pop(name, None)
        else:
            self.names[name] = value

    def _augment(self, node: ast.AugAssign) -> None:
        added = self._value(node.value)
        if not isinstance(node.target, ast.Name):
            return
        known, operator = self.names.get(node.target.id), _OPERATORS.get(type(node.op))
        result = None
        if known is not None and added is not None and operator is not None:
            result = _axes.binary(operator, known, added)
        self._set(node.target.id, result)
        self.constants.pop(node.target.id, None)

    def _for(self, node: ast.For) -> None:
        step, start = _axes.constant(1), _axes.constant(0)
        if isinstance(node.iter, ast.Call):
            bounds = [self._value(item) for item in node.iter.args]
            if len(bounds) >= 2:
                start = bounds[0] or _axes.scalar()
            if len(bounds) == 3:
                step = bounds[2] or _axes.scalar()
        if isinstance(node.target, ast.Name):
            first = _axes.binary("*", step, _axes.scalar())
            self._set(node.target.id, _axes.binary("+", start, first) if first else None)
            self.constants.pop(node.target.id, None)
        self._repeat(node.body)

    def _repeat(self, body: list[ast.stmt]) -> None:
        """A loop's body until the names at its head no longer change."""
        for _ in range(_MOST_PASSES):
            before = dict(self.names)
            self.run(body)
            after = self._joined(before, self.names)
            self.names = after
            if after == before:
                return
        for name in _assigned(body):
            self._set(name, None)

    def _branch(self, node: ast.If) -> None:
        test = self._constant(node.test)
        if test is not _UNKNOWN:
            self.run(node.body if test else node.orelse)
            return
        self._value(node.test)
        before, known = dict(self.names), dict(self.constants)
        self.run(node.body)
        one, self.names = self.names, before
        self.constants = dict(known)
        self.run(node.orelse)
        self.names = self._joined(one, self.names)
        changed = _assigned([*node.body, *node.orelse])
        self.constants = {name: known[name] for name in known.keys() - changed}

    def _joined(self, one: dict[str, Value], two: dict[str, Value]) -> dict[str, Value]:
        joined = {name: _axes.join(one[name], two[name]) for name in one.keys() & two.keys()}
        return {name: value for name, value in joined.items() if value is not None}

    def _values(self, node: ast.expr) -> tuple[Value | None, ...]:
        if isinstance(node, ast.Tuple):
            return tuple(self._value(item) for item in node.elts)
        if isinstance(node, ast.Call):
            return self._call(node)
        return (self._value(node),)

    def _value(self, node: ast.expr) -> Value | None:
        if isinstance(node, ast.Constant):
            return _axes.constant(int(node.value)) if isinstance(node.value, int) else None
        if isinstance(node, ast.Name):
            return self.names.get(node.id)
        if isinstance(node, ast.Call):
            values = self._call(node)
            return values[0] if len(values) == 1 else None
        if isinstance(node, ast.BinOp):
            return self._binary(_OPERATORS.get(type(node.op)), node.left, node.right)
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            return self._binary(_OPERATORS.get(type(node.ops[0])), node.left, node.comparators[0])
        if isinstance(node, ast.UnaryOp):
            return self._unary(node)
        if isinstance(node, ast.Subscript):
            return self._subscript(node)
        if isinstance(node, ast.IfExp):
            return self._choice(node)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self._value(child)
        return None

    def _binary(self, operator: str | None, left: ast.expr, right: ast.expr) -> Value | None:
        one, two = self._value(left), self._value(right)
        if one is None or two is None or operator is None:
            return None
        return _axes.binary(operator, one, two)

    def _unary(self, node: ast.UnaryOp) -> Value | None:
        value = self._value(node.operand)
        if value is None:
            return None
        if isinstance(node.op, ast.USub):
            return _axes.binary("-", _axes.constant(0), value)
        return (
            _axes.binary("^", value, value) if isinstance(node.op, ast.Invert | ast.Not) else value
        )

    def _subscript(self, node: ast.Subscript) -> Value | None:
        """``x[:, None]`` and the like."""
        value = self._value(node.value)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        for position, part in enumerate(parts):
            if isinstance(part, ast.Constant) and part.value is None:
                value = _axes.expanded(value, position) if value is not None else None
            elif not (isinstance(part, ast.Slice) and part.lower is part.upper is None):
                return None
        return value

    def _choice(self, node: ast.IfExp) -> Value | None:
        test = self._constant(node.test)
        if test is not _UNKNOWN:
            return self._value(node.body if test else node.orelse)
        one, two = self._value(node.body), self._value(node.orelse)
        return _axes.join(one, two) if one is not None and two is not None else None

    def _call(self, node: ast.Call) -> tuple[Value | None, ...]:
        name = called_name(node) or ""
        if isinstance(node.func, ast.Name) and name in self._around.functions:
            return self._helper(node, self._around.functions[name])
        arguments = [self._value(item) for item in node.args]
        named = {item.arg: self._value(item.value) for item in node.keywords if item.arg}
        if name in ("load", "store"):
            return (self._access(node, arguments, named, store=name == "store"),)
        if name == "to" and isinstance(node.func, ast.Attribute):
            return (self._cast(node),)
        return (self._operation(name, node, arguments),)

    def _cast(self, node: ast.Call) -> Value | None:
        assert isinstance(node.func, ast.Attribute)
        value = self._value(node.func.value)
        return None if value is None or value.element_bytes else replace(value, argument=False)

    def _operation(self, name: str, node: ast.Call, given: list[Value | None]) -> Value | None:
        if name in _SCALARS:
            return _axes.scalar()
        if name == "arange":
            return self._arange(given)
        if name in ("zeros", "full"):
            return self._filled(node, given)
        if not given or given[0] is None:
            return None
        first = given[0]
        if name in _UNCHANGED:
            return None if first.element_bytes else first
        if name in _HINTS and len(node.args) == 2:
            return _axes.hinted(first, name, self._numbers(node.args[1]))
        if (
            name in ("minimum", "maximum", "min", "max")
            and len(given) == 2
            and given[1] is not None
        ):
            return _axes.extreme(first, given[1])
        if name == "where" and len(given) == 3 and given[1] is not None and given[2] is not None:
            return _axes.select(first, given[1], given[2])
        if name == "cdiv" and len(given) == 2 and given[1] is not None:
            return self._rounded_up(first, given[1])
        if name == "expand_dims" and len(node.args) == 2:
            place = self._constant(node.args[1])
            return _axes.expanded(first, place) if isinstance(place, int) else None
        return None

    def _arange(self, given: list[Value | None]) -> Value | None:
        bounds = [item.constant for item in given if item is not None]
        if len(bounds) != 2 or bounds[0] is None or bounds[1] is None or bounds[1] <= bounds[0]:
            return None
        return _axes.arange(bounds[0], bounds[1])

    def _filled(self, node: ast.Call, given: list[Value | None]) -> Value | None:
        sizes = self._numbers(node.args[0]) if node.args else ()
        fill = given[1] if called_name(node) == "full" and len(given) > 1 else _axes.constant(0)
        return _axes.filled(sizes, fill) if sizes and fill is not None else None

    def _rounded_up(self, value: Value, divisor: Value) -> Value | None:
        more = _axes.binary("-", divisor, _axes.constant(1))
        total = _axes.binary("+", value, more) if more is not None else None
        return _axes.binary("//", total, divisor) if total is not None else None

    def _access(
        self,
        node: ast.Call,
        given: list[Value | None],
        named: dict[str, Value | None],
        *,
        store: bool,
    ) -> Value | None:
        position = 2 if store else 1
        written = len(node.args) > position or any(k.arg == "mask" for k in node.keywords)
        mask = given[position] if len(given) > position else named.get("mask")
        if written and self._is_none(node, position):
            written = False
        pointer = given[0] if given else named.get("pointer")
        if pointer is None or not pointer.element_bytes or (written and mask is None):
            self.found.pop(node, None)
            return None
        if mask is not None and mask.sizes:
            pair = _axes.broadcast(pointer, mask)
            if pair is None:
                return None
            pointer, mask = pair
        if pointer.sizes:
            self.found[node] = Access(node, store, pointer, mask)
        return None if store else _axes.loaded(pointer, mask)

    def _is_none(self, node: ast.Call, position: int) -> bool:
        given = node.args[position] if len(node.args) > position else None
        mask = given or next((k.value for k in node.keywords if k.arg == "mask"), None)
        return mask is not None and self._constant(mask) is None

    def _helper(self, node: ast.Call, function: ast.FunctionDef) -> tuple[Value | None, ...]:
        parameters = [*function.args.posonlyargs, *function.args.args]
        if self._depth >= _DEEPEST_CALL or len(node.args) > len(parameters):
            return (None,)
        inner = _Walk(self._around, self.found, depth=self._depth + 1)
        given = {p.arg: item for p, item in zip(parameters, node.args, strict=False)}
        given.update({item.arg: item.value for item in node.keywords if item.arg})
        defaults = zip(reversed(parameters), reversed(function.args.defaults), strict=False)
        for parameter, default in defaults:
            given.setdefault(parameter.arg, default)
        for name, item in given.items():
            inner.bind(name, self._value(item), self._constant(item))
        inner.run(function.body)
        return inner.result if inner.result is not None else (None,)

    def bind(self, name: str, value: Value | None, known: object) -> None:
        """A parameter of a helper."""
        self._set(name, value)
        if known is not _UNKNOWN:
            self.constants[name] = known

    def _bind_constant(self, name: str, value: object) -> None:
        self.constants[name] = value
        if isinstance(value, int):
            self.names[name] = _axes.constant(int(value))

    def _numbers(self, node: ast.expr) -> tuple[int, ...]:
        """Integers of a shape or a hint; empty if one is not known."""
        items = node.elts if isinstance(node, ast.Tuple | ast.List) else [node]
        values = [self._value(item) for item in items]
        known = [item.constant for item in values if item is not None]
        numbers = [number for number in known if number is not None]
        return tuple(numbers) if len(numbers) == len(items) else ()

    def _constant(self, node: ast.expr) -> object:
        """A compile-time value, or ``_UNKNOWN``."""
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            return self.constants.get(node.id, _UNKNOWN)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            value = self._constant(node.operand)
            return _UNKNOWN if value is _UNKNOWN else not value
        if isinstance(node, ast.BoolOp):
            return self._logical(node)
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            return _compared(
                node.ops[0], self._constant(node.left), self._constant(node.comparators[0])
            )
        value = self._value(node) if isinstance(node, ast.BinOp) else None
        return value.constant if value is not None and value.constant is not None else _UNKNOWN

    def _logical(self, node: ast.BoolOp) -> object:
        values = [self._constant(item) for item in node.values]
        decisive = isinstance(node.op, ast.Or)
        if any(value is not _UNKNOWN and bool(value) is decisive for value in values):
            return decisive
        return _UNKNOWN if _UNKNOWN in values else not decisive


_UNKNOWN = object()


def _compared(operator: ast.cmpop, left: object, right: object) -> object:
    if left is _UNKNOWN or right is _UNKNOWN:
        return _UNKNOWN
    if isinstance(operator, ast.Eq | ast.Is):
        return left == right
    if isinstance(operator, ast.NotEq | ast.IsNot):
        return left != right
    if not isinstance(left, int | float) or not isinstance(right, int | float):
        return _UNKNOWN
    if isinstance(operator, ast.Lt | ast.LtE):
        return left < right or (left == right and isinstance(operator, ast.LtE))
    if isinstance(operator, ast.Gt | ast.GtE):
        return left > right or (left == right and isinstance(operator, ast.GtE))
    return _UNKNOWN


def _assigned(body: Iterable[ast.stmt]) -> set[str]:
    return {
        node.id
        for statement in body
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
