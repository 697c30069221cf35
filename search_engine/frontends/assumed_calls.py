"""What the functions of ``triton.language`` say about the values they are called with."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol, TypeAlias

from search_engine.frontends.assumed_uses import (
    INTEGER,
    NOTHING,
    Evidence,
    KernelUses,
    Value,
    together,
    union,
)

DATA_TYPES = {
    "float64": "fp64", "float32": "fp32", "float16": "fp16", "bfloat16": "bf16",
    "float8e4nv": "fp8e4nv", "float8e5": "fp8e5", "float8e4b8": "fp8e4b8",
    "float8e4b15": "fp8e4b15", "float8e5b16": "fp8e5b16",
    "int64": "i64", "int32": "i32", "int16": "i16", "int8": "i8", "int1": "i1",
    "uint64": "u64", "uint32": "u32", "uint16": "u16", "uint8": "u8",
}  # fmt: skip
"""``triton.language``'s names of element types to those of a signature."""

PASSING = frozenset({
    "multiple_of", "max_contiguous", "max_constancy", "trans", "permute", "expand_dims",
    "ravel", "flip", "broadcast_to", "broadcast", "split", "join", "cat", "interleave",
    "reshape", "view", "advance", "assume", "sort",
})  # fmt: skip
"""Functions that give their argument's data back, moved at most."""

_FLOAT = frozenset({
    "exp", "exp2", "exp10", "expm1", "log", "log2", "log10", "log1p", "sqrt", "sqrt_rn",
    "rsqrt", "sin", "cos", "tan", "tanh", "sigmoid", "erf", "erfc", "softmax", "fdiv", "div_rn",
    "fast_expf", "fast_dividef", "pow", "floor", "ceil", "round", "rint", "cosh", "sinh",
    "acos", "asin", "atan", "atan2", "fma", "isnan", "isinf", "finitef", "isfinited", "lgamma",
    "silu", "gelu",
})  # fmt: skip
_INTEGER = frozenset({
    "program_id", "num_programs", "cdiv", "umulhi", "swizzle2d", "argmax", "argmin", "range",
    "static_range", "cluster_dim",
})  # fmt: skip
_BOUNDS = frozenset({"cdiv", "range", "static_range", "program_id"})
_MINMAX = frozenset({"minimum", "maximum", "min", "max", "clamp"})


class Evaluator(Protocol):
    """The reader of a kernel, as a function's rule sees it."""

    uses: KernelUses

    def value(self, node: ast.expr, scope: dict[str, Value]) -> Value:
        """What is known about an expression."""
        ...


Rule: TypeAlias = Callable[[Evaluator, ast.Call, dict[str, Value]], Value]


def library_call(reader: Evaluator, name: str, values: tuple[Value, ...]) -> Value:
    """The value of a call of a function without a rule of its own."""
    uses = reader.uses
    if name in PASSING:
        return replace(values[0], constant=None) if values else NOTHING
    if name in _INTEGER:
        for value in values if name in _BOUNDS else ():
            uses.number(value, Evidence.INTEGER)
            uses.data(value, Evidence.INDEX)
            for constant in constants_of(value) if name == "static_range" else ():
                uses.constant(constant).unrolled = True
        return INTEGER
    if name in _FLOAT:
        for value in values:
            uses.number(value, Evidence.FLOAT)
        return together(values).computed("float")
    if name in _MINMAX and len(values) > 1:
        return union(values[0].computed(), values[1].computed())
    return together(values).computed()


def called_name(function: ast.expr) -> str:
    """Last name of a callee."""
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def keyword(node: ast.Call, name: str) -> ast.expr | None:
    """The value of a keyword argument."""
    return next((item.value for item in node.keywords if item.arg == name), None)


def converted(reader: Evaluator, base: Value, node: ast.Call, scope: dict[str, Value]) -> Value:
    """``x.to(type)``."""
    target = node.args[0] if node.args else keyword(node, "dtype")
    if target is None:
        return base
    found = reader.value(target, scope)
    if found.constant is not None:
        reader.uses.constant(found.constant).dtype = True
    if isinstance(target, ast.Call) and called_name(target.func) == "pointer_type":
        reader.uses.data(base, Evidence.POINTEE)
        for name in base.addends[:1]:
            reader.uses.parameter(name, Evidence.POINTEE)
        return base
    name = _type_name(target)
    if name is None:
        return base.cast(None if base.kind == "int" else base.kind, None)
    kind = kind_of_type(name)
    if kind == "bool":
        reader.uses.data(base, Evidence.CONDITION)
    elif kind == "int":
        reader.uses.number(base, Evidence.INTEGER)
    elif base.direct and name == "fp32":
        reader.uses.data(base, Evidence.WIDENED)
    return base.cast(kind, name)


def kind_of_type(name: str) -> str:
    """``float``, ``int`` or ``bool`` of one of Triton's element types."""
    return "float" if name.startswith(("fp", "bf")) else "bool" if name == "i1" else "int"


def note_shape(reader: Evaluator, nodes: list[ast.expr], scope: dict[str, Value]) -> None:
    """Constants in these expressions are lengths of a block."""
    for node in nodes:
        lengths = node.elts if isinstance(node, (ast.Tuple, ast.List)) else [node]
        found = [constants_of(reader.value(length, scope)) for length in lengths]
        for names in found:
            for name in names:
                use = reader.uses.constant(name)
                use.shape = True
                use.factor = use.factor or len(names) > 1
                use.square = use.square or sum(name in other for other in found) > 1


def constants_of(value: Value) -> tuple[str, ...]:
    """The constant that a value is, or those that it is computed from."""
    return (value.constant,) if value.constant is not None else value.made_of


def _type_name(node: ast.expr | None) -> str | None:
    return DATA_TYPES.get(node.attr) if isinstance(node, ast.Attribute) else None


def _argument(
    reader: Evaluator, node: ast.Call, place: tuple[int, str], scope: dict[str, Value]
) -> Value:
    position, name = place
    if len(node.args) > position:
        return reader.value(node.args[position], scope)
    named = keyword(node, name)
    return reader.value(named, scope) if named is not None else NOTHING


def _mask(reader: Evaluator, node: ast.Call, position: int, scope: dict[str, Value]) -> None:
    reader.uses.data(_argument(reader, node, (position, "mask"), scope), Evidence.CONDITION)


def _load(reader: Evaluator, node: ast.Call, scope: dict[str, Value]) -> Value:
    address = _argument(reader, node, (0, "pointer"), scope)
    index = reader.uses.access(node, address)
    _mask(reader, node, 1, scope)
    _hints(reader, node, scope)
    return Value(loads=frozenset({index}), direct=True)


def _store(reader: Evaluator, node: ast.Call, scope: dict[str, Value]) -> Value:
    index = reader.uses.access(node, _argument(reader, node, (0, "pointer"), scope))
    reader.uses.stored(index, _argument(reader, node, (1, "value"), scope))
    _mask(reader, node, 2, scope)
    _hints(reader, node, scope)
    return NOTHING


def _hints(reader: Evaluator, node: ast.Call, scope: dict[str, Value]) -> None:
    """Constants that choose a cache policy: none is chosen by an empty text."""
    for name in ("eviction_policy", "cache_modifier", "padding_option"):
        given = keyword(node, name)
        value = reader.value(given, scope) if given is not None else NOTHING
        if value.constant is not None:
            reader.uses.constant(value.constant).compared.append("")


def _atomic(reader: Evaluator, node: ast.Call, scope: dict[str, Value]) -> Value:
    index = reader.uses.access(node, _argument(reader, node, (0, "pointer"), scope))
    reader.uses.accesses[index].atomic = True
    reader.uses.stored(index, _argument(reader, node, (1, "val"), scope))
    if called_name(node.func) == "atomic_cas":
        reader.uses.stored(index, _argument(reader, node, (2, "val"), scope))
    else:
        _mask(reader, node, 2, scope)
    return Value(loads=frozenset({index}))


def _block_pointer(reader: Evaluator, node: ast.Call, scope: dict[str, Value]) -> Value:
    descriptor = called_name(node.func) != "make_block_ptr"
    base = _argument(reader, node, (0, "base"), scope)
    places = ((1, "shape"), (2, "strides"), (3, "block_shape" if descriptor else "offsets"))
    for place in places:
        found = _argument(reader, node, place, scope)
        for value in (found, *found.items):
            reader.uses.number(value, Evidence.INTEGER)
            reader.uses.data(value, Evidence.INDEX)
            for name in _strides_in(value) if place[1] == "strides" else ():
                reader.uses.parameter(name, Evidence.SPREAD)
        if descriptor and place[1] == "strides" and found.items:
            for name in _strides_in(found.items[-1]):
                reader.uses.parameter(name, Evidence.UNIT)
    position = 3 if descriptor else 4
    shape = keyword(node, "block_shape")
    blocks = node.args[position : position + 1] + ([shape] if shape is not None else [])
    note_shape(reader, blocks, scope)
    if len(base.addends) == 1:
        reader.uses.parameter(base.addends[0], Evidence.POINTER)
    strides = node.args[2] if len(node.args) > 2 else keyword(node, "strides")
    last = strides.elts[-1] if isinstance(strides, (ast.Tuple, ast.List)) and strides.elts else None
    unit = isinstance(last, ast.Constant) and last.value == 1
    return replace(base, kind="descriptor", block=True, unit=unit)


def _strides_in(value: Value) -> tuple[str, ...]:
    return value.addends if value.constant is None else (value.constant,)


def _arange(reader: Evaluator, node: ast.Call, scope: dict[str, Value]) -> Value:
    lengths = [*node.args, *(item.value for item in node.keywords)]
    note_shape(reader, lengths, scope)
    names = constants_of(reader.value(lengths[-1], scope)) if lengths else ()
    axis = names[0] if len(names) == 1 else ""
    return Value(kind="int", block=True, unit=True, axes=(axis,))


def _filled(reader: Evaluator, node: ast.Call, scope: dict[str, Value]) -> Value:
    """``tl.zeros``, ``tl.full``: a shape and, last, a type."""
    shape = node.args[0] if node.args else keyword(node, "shape")
    note_shape(reader, [shape] if shape is not None else [], scope)
    last = node.args[-1] if len(node.args) > 1 else None
    written = keyword(node, "dtype") or last
    for item in (*node.args[1:], *(k.value for k in node.keywords if k.arg != "shape")):
        value = reader.value(item, scope)
        if value.constant is not None and item is written:
            reader.uses.constant(value.constant).dtype = True
    name = _type_name(written)
    return Value(kind=kind_of_type(name), dtype=name) if name is not None else NOTHING


def _shaped(reader: Evaluator, node: ast.Call, scope: dict[str, Value]) -> Value:
    """``tl.reshape(x, shape)`` and the like."""
    note_shape(reader, node.args[1:], scope)
    return replace(reader.value(node.args[0], scope), constant=None) if node.args else NOTHING


def _dot(reader: Evaluator, node: ast.Call, scope: dict[str, Value]) -> Value:
    reader.uses.has_dot = True
    values = tuple(reader.value(argument, scope) for argument in node.args)
    for item in node.keywords:
        value = reader.value(item.value, scope)
        if value.constant is not None:
            use = reader.uses.constant(value.constant)
            use.dtype, use.flag = item.arg == "out_dtype", item.arg == "allow_tf32"
            if item.arg == "input_precision":
                use.compared.append("ieee")
    for value in values[:2]:
        if value.direct:
            reader.uses.data(value, Evidence.DOT)
    return together(values).computed("float")


def _where(reader: Evaluator, node: ast.Call, scope: dict[str, Value]) -> Value:
    values = [reader.value(argument, scope) for argument in node.args]
    if len(values) != 3:
        return together(tuple(values)).computed()
    reader.uses.data(values[0], Evidence.CONDITION)
    if values[0].constant is not None:
        reader.uses.constant(values[0].constant).flag = True
    return union(values[1], values[2])


def _cast(reader: Evaluator, node: ast.Call, scope: dict[str, Value]) -> Value:
    """``tl.cast(x, type)``."""
    base = _argument(reader, node, (0, "input"), scope)
    rest = ast.Call(func=node.func, args=node.args[1:], keywords=node.keywords)
    return converted(reader, base, rest, scope)


RULES: dict[str, Rule] = {
    "load": _load,
    "store": _store,
    **{
        f"atomic_{name}": _atomic
        for name in ["add", "max", "min", "and", "or", "xor", "cas", "xchg"]
    },
    "make_block_ptr": _block_pointer,
    "make_tensor_descriptor": _block_pointer,
    "arange": _arange,
    "zeros": _filled,
    "full": _filled,
    "reshape": _shaped,
    "view": _shaped,
    "broadcast_to": _shaped,
    "dot": _dot,
    "where": _where,
    "cast": _cast,
}
