"""The arguments of a launch as the compiler saw them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from search_engine.domain.code import ArgumentKind, KernelArgument
from search_engine.worker.compile import constant_text

_DIVISIBILITY = "tt.divisibility"
_UNIT = 16
"""The only divisor that Triton tells its compiler about."""


def kernel_arguments(source: Any, values: Sequence[str | None]) -> tuple[KernelArgument, ...]:
    """Arguments in the order of the parameters.

    ``source`` is the ``ASTSource`` of a compiled kernel; ``values`` are the numbers that were
    passed, as text, by parameter; fewer or none if they are not known.
    """
    known = [*values, *[None] * len(source.fn.params)]
    return tuple(
        _argument(source, index, parameter, known[index])
        for index, parameter in enumerate(source.fn.params)
    )


def _argument(source: Any, index: int, parameter: Any, value: str | None) -> KernelArgument:
    dtype = source.signature.get(parameter.name, "constexpr")
    kind = _kind(dtype)
    divisible = _is_told(source.attrs.get((index,), ()))
    if kind is ArgumentKind.CONSTANT:
        constant = source.constants.get((index,))
        constant = getattr(constant, "value", constant) if _is_wrapped(constant) else constant
        value = constant_text(constant)
        divisible = isinstance(constant, int) and constant != 0 and constant % _UNIT == 0
    elif kind not in (ArgumentKind.INTEGER, ArgumentKind.FLOAT):
        value = None
    flags = ("do_not_specialize", "do_not_specialize_on_alignment")
    withheld = any(getattr(parameter, flag, False) for flag in flags)
    return KernelArgument(parameter.name, kind, str(dtype), divisible, value, not withheld)


def _kind(dtype: Any) -> ArgumentKind:
    if not isinstance(dtype, str):
        return ArgumentKind.OTHER
    if dtype == "constexpr":
        return ArgumentKind.CONSTANT
    if dtype.startswith("*"):
        return ArgumentKind.POINTER
    if dtype[:1] in ("i", "u") and dtype[1:].isdigit():
        return ArgumentKind.INTEGER
    return ArgumentKind.FLOAT if dtype[:2] in ("fp", "bf") else ArgumentKind.OTHER


def _is_wrapped(constant: Any) -> bool:
    return type(constant).__name__ == "constexpr"


def _is_told(attributes: Any) -> bool:
    return any(list(item)[:2] == [_DIVISIBILITY, _UNIT] for item in attributes)
