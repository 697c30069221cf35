"""One item of a ``workload`` line: ``x=f32[M:4096,8192]{normal*0.1}@(1,4096)!`` or ``eps=1e-6``."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable
from dataclasses import dataclass

from search_engine.domain.workload import (
    DTYPES,
    Distribution,
    Extent,
    Role,
    ScalarArgument,
    TensorArgument,
    Values,
)
from search_engine.frontends.declaration_lines import DeclarationError, Item

_ITEM = re.compile(r"([A-Za-z_]\w*)=(.*)", re.S)
_TENSOR = re.compile(r"([A-Za-z_]\w*)\[")
_EXTENT = re.compile(r"(?:([A-Za-z_]\w*):)?(\d[\d_]*)|([A-Za-z_]\w*)")
_NAMED = re.compile(r"([A-Za-z_]\w*):(\d[\d_]*)")
_INTEGER = r"(-?\d[\d_]*)"
_NUMBER = r"([-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)"
_LITERALS = {"true": "True", "false": "False", "none": "None", "null": "None"}
_SCALAR_NAMES = frozenset({"torch", "math", "inf", "nan", "min", "max", "int", "float", "abs"})
"""What a scalar expression may name besides extents."""
_OTHER_DTYPES = {
    "fp16": "f16", "half": "f16", "float16": "f16", "bfloat16": "bf16", "fp32": "f32",
    "float": "f32", "float32": "f32", "fp64": "f64", "double": "f64", "float64": "f64",
    "int8": "i8", "int16": "i16", "int": "i32", "int32": "i32", "long": "i64", "int64": "i64",
    "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64", "bool": "b1", "i1": "b1",
    "fp8e4m3": "f8e4m3", "fp8e5m2": "f8e5m2",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class NamedValue:
    """``name=value`` with the offset of the value."""

    name: str
    value: str
    offset: int
    value_offset: int

    @property
    def is_tensor(self) -> bool:
        """True if the value is written like a tensor."""
        return _TENSOR.match(self.value) is not None


def named_value(item: Item) -> NamedValue:
    """Split an item. Raises DeclarationError if it is not ``name=value``."""
    match = _ITEM.fullmatch(item.text)
    if match is None:
        raise DeclarationError(
            item.offset, len(item.text), f"expected name=value, got `{item.text}`"
        )
    name, value = match.groups()
    offset = item.offset + match.start(2)
    if not value:
        raise DeclarationError(offset - 1, 1, f"expected a value after `{name}=`")
    return NamedValue(name, value, item.offset, offset)


def named_extents(items: list[NamedValue]) -> dict[str, int]:
    """Sizes of all extents that are named in one case: ``M:4096``.

    Raises DeclarationError if a name has two sizes.
    """
    sizes: dict[str, int] = {}
    for item in items:
        if not item.is_tensor:
            continue
        begin = item.value.index("[")
        for match in _NAMED.finditer(item.value, begin, max(item.value.find("]"), begin)):
            name, size = match.group(1), int(match.group(2))
            if sizes.setdefault(name, size) != size:
                raise DeclarationError(
                    item.value_offset + match.start(), len(match.group()),
                    f"expected one size for {name}, got {sizes[name]} and {size}",
                )  # fmt: skip
    return sizes


def tensor(item: NamedValue, name: str, sizes: dict[str, int]) -> TensorArgument:
    """Parse ``dtype[dims]`` with its values, strides and role. ``sizes`` are the named extents."""
    match = _TENSOR.match(item.value)
    if match is None:
        raise DeclarationError(item.value_offset, len(item.value), "expected dtype[sizes]")
    dtype = match.group(1)
    if dtype not in DTYPES:
        raise DeclarationError(item.value_offset, len(dtype), _dtype_message(dtype))
    close = item.value.find("]")
    extents = _extents(item.value[match.end() : close], item.value_offset + match.end(), sizes)
    parts = _Suffixes(item.value, item.value_offset, close + 1)
    parts.read()
    strides = _strides(parts, len(extents)) if parts.strides is not None else None
    size = math.prod(extent.size for extent in extents)
    values = _values(parts, dtype, size, item)
    return TensorArgument(name, dtype, extents, values, strides, parts.role)


def scalar(item: NamedValue, name: str, extents: dict[str, int]) -> ScalarArgument:
    """A Python literal, or an expression over named extents."""
    text = _LITERALS.get(item.value, item.value)
    names = expression_names(text, item.value_offset)
    unknown = sorted(names - _SCALAR_NAMES - extents.keys())
    if unknown:
        known = f"named extents are {', '.join(extents)}" if extents else "no extent has a name"
        raise DeclarationError(
            item.value_offset,
            len(item.value),
            f"expected a Python literal or an expression over named extents, got `{unknown[0]}`; "
            f"{known}; a string needs quotes",
        )
    return ScalarArgument(name, text)


def expression_names(text: str, offset: int) -> set[str]:
    """Free names of a Python expression. Raises DeclarationError if it does not parse."""
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError) as error:
        column = (getattr(error, "offset", 0) or len(text) + 1) - 1  # 0: at the end
        reason = getattr(error, "msg", str(error))
        raise DeclarationError(
            offset + min(column, len(text)), 1, f"expected a Python expression: {reason}"
        ) from error
    return free_names(tree)


def free_names(tree: ast.AST) -> set[str]:
    """Names that are read in a tree and bound nowhere in it."""
    read: set[str] = set()
    bound: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (read if isinstance(node.ctx, ast.Load) else bound).add(node.id)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.alias):
            bound.add((node.asname or node.name).split(".")[0])
    return read - bound


class _Suffixes:
    """The ``{values}``, ``@(strides)`` and ``!`` behind the sizes, in any order."""

    def __init__(self, text: str, offset: int, position: int) -> None:
        self.text, self.offset, self.position = text, offset, position
        self.values: tuple[str, int] | None = None
        self.strides: tuple[str, int] | None = None
        self.role = Role.INPUT

    def read(self) -> None:
        """Consume everything behind the sizes."""
        text = self.text
        while self.position < len(text):
            rest = text[self.position :]
            at = self.offset + self.position
            if rest.startswith("{") and self.values is None and "}" in rest:
                end = rest.index("}")
                self.values = rest[1:end], at + 1
                self.position += end + 1
            elif rest.startswith("@(") and self.strides is None and ")" in rest:
                end = rest.index(")")
                self.strides = rest[2:end], at + 2
                self.position += end + 1
            elif rest.startswith("!") and self.role is Role.INPUT:
                self.role = Role.INOUT if rest.startswith("!!") else Role.OUTPUT
                self.position += 2 if self.role is Role.INOUT else 1
            else:
                raise DeclarationError(
                    at, len(rest), f"expected {{values}}, @(strides), ! or a blank, got `{rest}`"
                )


def _dtype_message(got: str) -> str:
    meant = _OTHER_DTYPES.get(got.lower())
    hint = f"; write {meant}" if meant else ""
    return f"expected a dtype ({', '.join(DTYPES)}), got `{got}`{hint}"


def _extents(text: str, offset: int, sizes: dict[str, int]) -> tuple[Extent, ...]:
    if not text.strip():
        return ()
    extents: list[Extent] = []
    for part in text.split(","):
        match = _EXTENT.fullmatch(part.strip())
        if match is None:
            raise DeclarationError(
                offset, max(len(part), 1), f"expected a size or NAME:size, got `{part.strip()}`"
            )
        name, size, known = match.groups()
        if known is not None and known not in sizes:
            raise DeclarationError(
                offset, len(part), f"expected a size for {known}: write {known}:SIZE once"
            )
        extents.append(Extent(sizes[known], known) if known else Extent(int(size), name))
        offset += len(part) + 1
    return tuple(extents)


def _strides(parts: _Suffixes, rank: int) -> tuple[int, ...]:
    text, offset = parts.strides or ("", 0)
    pieces = [piece.strip() for piece in text.split(",")]
    if not all(re.fullmatch(r"\d[\d_]*", piece) for piece in pieces):
        raise DeclarationError(
            offset, max(len(text), 1), f"expected strides in elements, got `{text}`"
        )
    if len(pieces) != rank:
        raise DeclarationError(
            offset, len(text), f"expected {rank} strides, one per dimension, got {len(pieces)}"
        )
    return tuple(int(piece) for piece in pieces)


def _values(parts: _Suffixes, dtype: str, size: int, item: NamedValue) -> Values:
    if parts.values is None:
        return _default_values(parts.role, dtype, item)
    text, offset = parts.values
    for pattern, make in _FORMS:
        match = re.fullmatch(pattern, text.strip())
        if match is not None:
            numbers = tuple(float(g.replace("_", "")) for g in match.groups() if g is not None)
            try:
                return make(match, numbers, dtype, size)
            except ValueError as error:
                raise DeclarationError(offset, max(len(text), 1), str(error)) from error
    raise DeclarationError(offset, max(len(text), 1), _forms_message(dtype, text))


def _default_values(role: Role, dtype: str, item: NamedValue) -> Values:
    if role is Role.OUTPUT:
        return Values(Distribution.ZEROS)
    if dtype == "b1":
        return Values(Distribution.BERNOULLI, (0.5,))
    if _is_float(dtype):
        return Values(Distribution.NORMAL, (1.0, 0.0))
    end = item.value_offset + len(item.value)
    raise DeclarationError(
        end - 1, 1, f"expected values for an {dtype} tensor, such as {{0..127}} behind the sizes"
    )


def _forms_message(dtype: str, got: str) -> str:
    if _is_float(dtype):
        forms = "normal, normal*S+M, uniform a..b, zeros or arange"
    elif dtype == "b1":
        forms = "a probability, zeros, or nothing"
    else:
        forms = "a..b, sorted a..b, offsets N, distinct N, permutation, zeros or arange"
    return f"expected {forms}, got `{got}`"


def _is_float(dtype: str) -> bool:
    return dtype[0] == "f" or dtype == "bf16"


_Make = Callable[["re.Match[str]", tuple[float, ...], str, int], Values]


def _normal(match: re.Match[str], _numbers: tuple[float, ...], dtype: str, _size: int) -> Values:
    if not _is_float(dtype):
        raise ValueError(f"normal draws floats; for {dtype} write a..b")
    scale, mean = match.groups()
    return Values(Distribution.NORMAL, (float(scale or 1), float(mean or 0)))


def _uniform(_match: re.Match[str], numbers: tuple[float, ...], dtype: str, _size: int) -> Values:
    if not _is_float(dtype):
        raise ValueError(f"uniform draws floats; for {dtype} write a..b")
    return Values(Distribution.UNIFORM, _ordered(numbers))


def _integers(match: re.Match[str], numbers: tuple[float, ...], dtype: str, _size: int) -> Values:
    if _is_float(dtype):
        raise ValueError(f"a..b draws integers; for {dtype} write uniform a..b")
    for number in numbers:
        _fits(number, dtype)
    kind = Distribution.SORTED if match.group().startswith("sorted") else Distribution.INTEGERS
    return Values(kind, _ordered(numbers))


def _offsets(_match: re.Match[str], numbers: tuple[float, ...], dtype: str, size: int) -> Values:
    _fits(numbers[0], dtype)
    if size < 2:
        raise ValueError("offsets need at least two elements: the first is 0, the last N")
    return Values(Distribution.OFFSETS, numbers)


def _distinct(_match: re.Match[str], numbers: tuple[float, ...], dtype: str, size: int) -> Values:
    _fits(numbers[0] - 1, dtype)
    if numbers[0] < size:
        raise ValueError(f"distinct {int(numbers[0])} cannot fill {size} elements")
    return Values(Distribution.DISTINCT, numbers)


def _permutation(_match: re.Match[str], _n: tuple[float, ...], dtype: str, size: int) -> Values:
    _fits(max(size - 1, 0), dtype)
    return Values(Distribution.PERMUTATION)


def _zeros(_match: re.Match[str], _n: tuple[float, ...], _dtype: str, _size: int) -> Values:
    return Values(Distribution.ZEROS)


def _arange(_match: re.Match[str], _n: tuple[float, ...], dtype: str, size: int) -> Values:
    if not _is_float(dtype):
        _fits(max(size - 1, 0), dtype)
    return Values(Distribution.ARANGE)


def _bernoulli(_match: re.Match[str], numbers: tuple[float, ...], dtype: str, _s: int) -> Values:
    if dtype != "b1":
        raise ValueError(f"a probability belongs to b1; for {dtype} write {_range_form(dtype)}")
    if not 0 <= numbers[0] <= 1:
        raise ValueError(f"expected a probability between 0 and 1, got {numbers[0]:g}")
    return Values(Distribution.BERNOULLI, numbers)


_FORMS: tuple[tuple[str, _Make], ...] = (
    (rf"normal(?:\s*\*\s*{_NUMBER})?(?:\s*\+\s*{_NUMBER})?", _normal),
    (rf"uniform\s+{_NUMBER}\.\.{_NUMBER}", _uniform),
    (rf"(?:sorted\s+)?{_INTEGER}\.\.{_INTEGER}", _integers),
    (rf"offsets\s+{_INTEGER}", _offsets),
    (rf"distinct\s+{_INTEGER}", _distinct),
    (r"permutation", _permutation),
    (r"zeros", _zeros),
    (r"arange", _arange),
    (_NUMBER, _bernoulli),
)


def _range_form(dtype: str) -> str:
    return "uniform a..b" if _is_float(dtype) else "a..b"


def _ordered(numbers: tuple[float, ...]) -> tuple[float, ...]:
    low, high = numbers
    if low > high:
        raise ValueError(f"expected the smaller bound first, got {low:g}..{high:g}")
    return numbers


def _fits(number: float, dtype: str) -> None:
    if _is_float(dtype):
        raise ValueError(f"expected an integer dtype for these values, got {dtype}")
    bits = int(dtype[1:])
    low = 0 if dtype[0] in "ub" else -(2 ** (bits - 1))
    high = 2**bits - 1 if dtype[0] in "ub" else 2 ** (bits - 1) - 1
    if not low <= number <= high:
        raise ValueError(f"{int(number)} does not fit {dtype} ({low}..{high})")
