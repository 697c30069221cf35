"""Tensors that hold float64 but answer with the dtype the workload declared.

A reference written for bf16 is evaluated with them: every operation computes in float64, while
``x.dtype`` in the expression is still bf16. A cast to a narrower type rounds, because the
reference asks for it, and is noted; a cast to a wider one does nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

_CAST_METHODS = {"float": "float32", "half": "float16", "bfloat16": "bfloat16", "double": "float64"}


def declare(tensor: Any, dtype: Any, noted: list[str]) -> Any:
    """The float64 ``tensor`` as one of dtype ``dtype``; narrowing casts are added to ``noted``."""
    made = tensor.as_subclass(_declared_class())
    made.declared, made.noted = dtype, noted
    return made


def plain(value: Any) -> Any:
    """The value with every declared tensor, also inside containers, as an ordinary one."""
    import torch

    if isinstance(value, _declared_class()):
        with torch._C.DisableTorchFunctionSubclass():
            return value.as_subclass(torch.Tensor)
    return _mapped(value, plain)


@functools.cache
def _declared_class() -> Any:
    import torch

    class Declared(torch.Tensor):
        declared: Any
        noted: list[str]

        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            del types
            return _Operation(torch, func, tuple(args), dict(kwargs or {})).apply()

    return Declared


class _Operation:
    """One torch function applied to arguments of which at least one is declared."""

    def __init__(
        self, torch: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        self.torch, self.func, self.args, self.kwargs = torch, func, args, kwargs
        found = _found((args, kwargs), _declared_class())
        self.noted: list[str] = found[0].noted
        self.source = _widest(torch, [item.declared for item in found])

    def apply(self) -> Any:
        """The result, declared again where it is floating point."""
        tensor = self.torch.Tensor
        if self.func == tensor.dtype.__get__:  # a new wrapper at each access: never identical
            return self.args[0].declared
        if self.func is tensor.element_size:
            return self.args[0].declared.itemsize
        target = self._target()
        with self.torch._C.DisableTorchFunctionSubclass():
            if self.func is tensor.view and self._explicit() is not None:
                bits = self.args[0].as_subclass(tensor).to(self.args[0].declared)
                return bits.view(self._explicit())
            args = self._widened(self.args)
            kwargs = self._widened(self.kwargs)
            func = self._function()
            return self._declared(func(*args, **kwargs), target)

    def _explicit(self) -> Any:
        dtypes = _found((self.args[1:], self.kwargs), self.torch.dtype)
        return dtypes[0] if dtypes else None

    def _target(self) -> Any:
        """The float dtype that the caller asks the result to have, or None."""
        name = getattr(self.func, "__name__", "")
        if name in _CAST_METHODS:
            return getattr(self.torch, _CAST_METHODS[name])
        if name in ("to", "type_as") and len(self.args) > 1:
            other = self.args[1]
            if isinstance(other, self.torch.Tensor):
                return other.dtype if other.dtype.is_floating_point else None
        explicit = self._explicit()
        return explicit if explicit is not None and explicit.is_floating_point else None

    def _function(self) -> Callable[..., Any]:
        if getattr(self.func, "__name__", "") in _CAST_METHODS:
            return lambda x: x.to(self.torch.float64)
        return self.func

    def _widened(self, value: Any) -> Any:
        torch = self.torch
        if isinstance(value, torch.Tensor):
            value = value.as_subclass(torch.Tensor)
            return value.to(torch.float64) if value.dtype.is_floating_point else value
        if isinstance(value, torch.dtype):
            return torch.float64 if value.is_floating_point else value
        return _mapped(value, self._widened)

    def _declared(self, result: Any, target: Any) -> Any:
        torch = self.torch
        if not isinstance(result, torch.Tensor):
            return _mapped(result, lambda item: self._declared(item, target))
        if not result.dtype.is_floating_point:
            return result
        dtype = target or self.source
        if target is not None and _is_narrower(torch, target, self.source):
            self.noted.append(f"the reference rounds to {str(target).removeprefix('torch.')}")
            result = result.to(target).to(torch.float64)
        return declare(result, dtype, self.noted)


def _is_narrower(torch: Any, dtype: Any, than: Any) -> bool:
    return torch.finfo(dtype).eps > torch.finfo(than).eps


def _widest(torch: Any, dtypes: list[Any]) -> Any:
    return min(dtypes, key=lambda dtype: float(torch.finfo(dtype).eps))


def _found(value: Any, kind: Any) -> list[Any]:
    if isinstance(value, kind):
        return [value]
    if isinstance(value, dict):
        value = tuple(value.values())
    if isinstance(value, (tuple, list)):
        return [item for part in value for item in _found(part, kind)]
    return []


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, dict):
        return {key: change(item) for key, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(change(item) for item in value))
    if isinstance(value, (tuple, list)):
        made = [change(item) for item in value]
        # torch.return_types (max, topk, sort) are tuples that take one sequence.
        return type(value)(made)
    return value
