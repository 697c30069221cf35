"""Values behind tensors that hold none: what torch operations of the entry compute is followed.

A tensor whose values are known carries a CPU tensor of the same layout. Every torch operation
whose tensor arguments are all known is done on those too, in place as well. So an entry may make
indices, read a length or ask for a maximum, at sizes that are never allocated for other tensors.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Generator
from pathlib import Path
from typing import Any

from search_engine.domain.workload import Case, Role, TensorArgument
from search_engine.worker import values
from search_engine.worker.attempt import Attempt
from search_engine.worker.trace_draws import can_draw
from search_engine.worker.trace_memory import AddressSpace
from search_engine.worker.values import HOST_ELEMENTS, Variant

MOST_FLOATS = 1 << 24
"""Elements of a case whose floats are built too, where the entry asks for them: 64 MiB."""

_SEED = 0
_KNOWN = "_traced_values"
_UNKNOWN_CONTENT = ("empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided")


class KnownValues:
    """Follows integers and booleans, and floats too if ``floats``."""

    def __init__(self, floats: bool) -> None:
        self._floats = floats
        self._most = MOST_FLOATS if floats else HOST_ELEMENTS
        self._stale: set[int] = set()
        self._kept: list[Any] = []

    def declare(self, arguments: dict[str, Any], case: Case, root: Path) -> dict[int, Any]:
        """Attach the declared values to the arguments of a case.

        Answers the declared argument by storage, for those that are drawn by position.
        """
        positioned: dict[int, TensorArgument] = {}
        for position, item in enumerate(case.arguments):
            if not isinstance(item, TensorArgument):
                continue
            tensor = arguments[item.name]
            setattr(tensor, _KNOWN, None)
            if item.role is Role.OUTPUT:
                continue
            built = self._built(item, tensor, position, root)
            setattr(tensor, _KNOWN, built)
            if built is None and can_draw(item):
                positioned[tensor.untyped_storage()._cdata] = item
        return positioned

    def of(self, tensor: Any) -> Any:
        """The CPU tensor with the values of a tensor, or None if they are not known."""
        with _plainly():
            known = tensor if tensor.device.type == "cpu" else getattr(tensor, _KNOWN, None)
            stale = known is not None and known.untyped_storage()._cdata in self._stale
        return None if stale else known

    def forget(self, tensor: Any) -> None:
        """Something that is not followed has written to the tensor."""
        known = self.of(tensor)
        if known is not None:
            with _plainly():
                storage = known.untyped_storage()
            self._kept.append(storage)
            self._stale.add(storage._cdata)

    def contents(self, tensor: Any) -> Any:
        """The bytes of a tensor's storage as numpy, or None if they are not known."""
        import torch

        known = self.of(tensor)
        if known is None:
            return None
        with _plainly():
            if known.stride() != tensor.stride() or known.dtype != tensor.dtype:
                return None
            if known.storage_offset() != tensor.storage_offset():
                return None
            flat = torch.empty(0, dtype=torch.uint8)
            return flat.set_(known.untyped_storage()).numpy()

    def call(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Do a torch operation on stand-ins, and on the values behind them where they are known."""
        given = _tensors((args, kwargs))
        if all(self.of(tensor) is not None for tensor in given):
            return self._followed(function, args, kwargs, given)
        result = function(*args, **kwargs)
        if given and _writes(function, kwargs):
            self.forget(kwargs.get("out", given[0]))
        return result

    def _followed(
        self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], given: list[Any]
    ) -> Any:
        try:
            result = function(*args, **kwargs)
        except (RuntimeError, TypeError):
            # The stand-in holds no data (item, cpu, nonzero): what is known answers.
            if not any(_stands_in(tensor) for tensor in given):
                raise
            return self._as_stand_ins(self._on_values(function, args, kwargs), function)
        made = [tensor for tensor in _tensors(result) if _stands_in(tensor)]
        writes = _writes(function, kwargs) and any(_stands_in(tensor) for tensor in given)
        if writes or any(self._follows(tensor) for tensor in made):
            self._attach(made, function, args, kwargs)
        return result

    def _attach(
        self, made: list[Any], function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        if getattr(function, "__name__", "") in _UNKNOWN_CONTENT:
            return
        with Attempt() as attempt:
            computed = _tensors(self._on_values(function, args, kwargs))
            for tensor, known in zip(made, computed, strict=True):
                if tuple(known.shape) == tuple(tensor.shape):
                    copied = any(known is value for value in args)  # a move to the device
                    setattr(tensor, _KNOWN, known.clone() if copied else known)
        if attempt.error is not None and _writes(function, kwargs):
            self.forget(kwargs.get("out", args[0]))

    def _on_values(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        import torch

        with _plainly(), torch.no_grad():
            named = {key: self._real(value) for key, value in kwargs.items()}
            if "pin_memory" in named:
                named["pin_memory"] = False
            if function is torch.Tensor.cuda:
                return self._real(args[0])
            return function(*(self._real(value) for value in args), **named)

    def _real(self, value: Any) -> Any:
        """An argument with values instead of stand-ins, on the CPU."""
        import torch

        if isinstance(value, torch.Tensor):
            return self.of(value)
        if isinstance(value, torch.device) or _names_device(value):
            return torch.device("cpu")
        if type(value) in (tuple, list):
            return type(value)(self._real(item) for item in value)
        return value

    def _as_stand_ins(self, result: Any, function: Any) -> Any:
        """Results stay on the device, but for functions that bring them to the host."""
        import torch

        if getattr(function, "__name__", "") in ("cpu", "to", "numpy"):
            return result
        if isinstance(result, torch.Tensor):
            with _plainly():
                tensor = result.to("meta")
            setattr(tensor, _KNOWN, result)
            return tensor
        if type(result) in (tuple, list):
            return type(result)(self._as_stand_ins(item, function) for item in result)
        return result

    def _follows(self, tensor: Any) -> bool:
        with _plainly():
            number = tensor.dtype.is_floating_point or tensor.dtype.is_complex
            return (self._floats or not number) and tensor.numel() <= self._most

    def _built(self, item: TensorArgument, tensor: Any, position: int, root: Path) -> Any:
        import torch

        strides = item.strides or ()
        if not self._follows(tensor) or 0 in strides or math.prod(item.shape) > self._most:
            return None
        with _plainly(), Attempt():
            drawn = values.draw(item, Variant.NORMAL, _SEED * 1009 + position, "cpu", root)
            storage = torch.zeros(
                tensor.untyped_storage().nbytes() // tensor.element_size(), dtype=tensor.dtype
            )
            built = storage.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
            return built.copy_(drawn)
        return None


def observing(space: AddressSpace, known: KnownValues) -> Any:
    """A context in which torch operations are followed and ``data_ptr`` gives made-up addresses."""
    import torch
    from torch.overrides import TorchFunctionMode

    data_ptr = torch.Tensor.data_ptr

    class Observing(TorchFunctionMode):
        def __torch_function__(
            self, func: Any, _types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if func is data_ptr:
                with _plainly():
                    return space.address(args[0])
            return known.call(func, args, kwargs or {})

    return Observing()


@contextlib.contextmanager
def _plainly() -> Generator[None]:
    """Torch functions mean what they say here: no mode is asked."""
    import torch

    with torch._C.DisableTorchFunction():
        yield


def _stands_in(tensor: Any) -> bool:
    with _plainly():
        return tensor.device.type == "meta"


def _tensors(value: Any) -> list[Any]:
    import torch

    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (tuple, list)):
        return []
    return [tensor for item in value for tensor in _tensors(item)]


def _names_device(value: Any) -> bool:
    return isinstance(value, str) and value.partition(":")[0] in ("cuda", "hip", "meta")


def _writes(function: Any, kwargs: dict[str, Any]) -> bool:
    """True for operations that change a tensor in place, by torch's naming."""
    name = getattr(function, "__name__", "")
    inplace = name.endswith("_") and not name.endswith("__")
    operator = name.startswith("__i") and name.endswith("__") and name not in _NOT_IN_PLACE
    return inplace or operator or name == "__setitem__" or kwargs.get("out") is not None


_NOT_IN_PLACE = ("__invert__", "__int__", "__index__", "__init__", "__iter__")
