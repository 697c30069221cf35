"""Arithmetic of a traced program, where it would be slow, wrong or missing and does not matter.

Loads give zeros, so most arithmetic is on zeros: products and conversions of zeros are not
computed. What the interpreter lacks (functions of libdevice, inline assembly) gives a made-up value
like a load whose values are not known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from search_engine.worker import trace_reductions
from search_engine.worker.trace_speed import Replacement

ASSEMBLY = "inline assembly"

_STEERING = ("create_fp_to_si", "create_fp_to_ui", "create_bitcast")
_SAME_NAMES = ("floor", "ceil", "trunc", "rint", "sqrt", "exp", "exp2", "log", "log2", "tanh",
               "sin", "cos")  # fmt: skip
_NUMPY_NAMES = {
    **{name: name for name in _SAME_NAMES},
    "fabs": "abs", "fmin": "minimum", "fmax": "maximum", "pow": "power",
}  # fmt: skip
"""Functions of libdevice that numpy has, without the suffix of their float form."""


Unknown: TypeAlias = Callable[[str, bool], int]
"""What the result of a function is taken as, by its name; True if it is a float."""


def replacements(steered: Callable[[], None], unknown: Unknown) -> list[Replacement]:
    """What stands in the interpreter during a trace.

    ``steered`` is called where floats turn into truth values or integers, ``unknown`` where a
    result cannot be computed.
    """
    from triton.runtime import interpreter

    builder = interpreter.InterpreterBuilder
    steering = [*_STEERING, *(name for name in vars(builder) if name.startswith("create_fcmp"))]
    return [
        *((builder, name, _noted(getattr(builder, name), steered)) for name in steering),
        (builder, "create_dot", _dot(builder.create_dot)),
        (builder, "create_erf", _of_zeros(builder.create_erf)),
        (builder, "create_extern_elementwise", _extern(interpreter, unknown)),
        (builder, "create_inline_asm", _assembly(interpreter, unknown)),
        *((builder, name, _nothing) for name in ("create_print", "create_assert", "create_assume")),
        (interpreter, "_convert_float", _conversion(interpreter._convert_float)),
        (interpreter.ReduceOps, "min_max", _extreme(interpreter.ReduceOps.min_max, steered)),
        *trace_reductions.replacements(steered),
    ]


def _extreme(original: Callable[..., Any], steered: Callable[[], None]) -> Callable[..., Any]:
    """Positions of extremes come from floats and may be indices."""

    def min_max(self: Any, input: Any, val_reduce_op: Any, idx_reduce_op: Any = None) -> Any:
        if idx_reduce_op is not None:
            steered()
        return original(self, input, val_reduce_op, idx_reduce_op)

    return min_max


def _noted(original: Callable[..., Any], note: Callable[[], None]) -> Callable[..., Any]:
    def replacement(*arguments: Any, **named: Any) -> Any:
        note()
        return original(*arguments, **named)

    return replacement


def _dot(original: Callable[..., Any]) -> Callable[..., Any]:
    def create_dot(builder: Any, a: Any, b: Any, d: Any, *rest: Any, **named: Any) -> Any:
        if not a.data.any() or not b.data.any():
            return d.clone()
        return original(builder, a, b, d, *rest, **named)

    return create_dot


def _of_zeros(original: Callable[..., Any]) -> Callable[..., Any]:
    """For functions that are zero at zero."""

    def replacement(builder: Any, argument: Any) -> Any:
        return original(builder, argument) if argument.data.any() else argument.clone()

    return replacement


def _conversion(original: Callable[..., Any]) -> Callable[..., Any]:
    import numpy as np

    def convert(data: Any, source: Any, target: Any, rounding: Any) -> Any:
        if data.any():
            return original(data, source, target, rounding)
        return np.zeros(data.shape, dtype=f"uint{target.primitive_bitwidth}")

    return convert


def _extern(interpreter: Any, unknown: Unknown) -> Callable[..., Any]:
    def create_extern_elementwise(
        _builder: Any, _library: str, _path: str, symbol: str, arguments: Any, kind: Any, _pure: Any
    ) -> Any:
        import numpy as np

        data = [argument.data for argument in arguments]
        name = symbol.removeprefix("__nv_")
        function = _NUMPY_NAMES.get(name) or _NUMPY_NAMES.get(name.removesuffix("f"))
        if function is None:
            return _filled(interpreter, data, kind, unknown, f"`{name}`")
        dtype = interpreter._get_np_dtype(kind)
        return interpreter.TensorHandle(getattr(np, function)(*data).astype(dtype), kind.scalar)

    return create_extern_elementwise


def _assembly(interpreter: Any, unknown: Unknown) -> Callable[..., Any]:
    def create_inline_asm(
        _builder: Any, _text: str, _constraints: str, values: Any, kinds: Any, *_rest: Any
    ) -> Any:
        kinds = kinds if isinstance(kinds, (list, tuple)) else [kinds]
        data = [value.data for value in values]
        return _Results([_filled(interpreter, data, kind, unknown, ASSEMBLY) for kind in kinds])

    return create_inline_asm


class _Results:
    """What Triton asks an assembly operation for."""

    def __init__(self, made: list[Any]) -> None:
        self._made = made

    def get_result(self, index: int) -> Any:
        return self._made[index]


def _filled(interpreter: Any, data: list[Any], kind: Any, unknown: Unknown, name: str) -> Any:
    import numpy as np

    shape = np.broadcast_shapes(*(item.shape for item in data)) if data else (1,)
    value = unknown(name, kind.scalar.is_floating())
    made = np.full(shape, value, dtype=interpreter._get_np_dtype(kind))
    return interpreter.TensorHandle(made, kind.scalar)


def _nothing(*_arguments: Any, **_named: Any) -> None:
    """Prints and assertions are about values, which are made up."""
