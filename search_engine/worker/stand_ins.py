"""Call an entry with tensors that have the workload's shapes but need no device.

Meta tensors hold no data at all; CPU tensors hold zeros, or the smallest legal values, for
entries that read values on the host.
"""

from __future__ import annotations

import inspect
import math
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from search_engine.domain.job import Refusal, RefusalKind, Source
from search_engine.domain.workload import (
    Case,
    Distribution,
    ScalarArgument,
    TensorArgument,
    Workload,
)
from search_engine.worker.loader import LoadError, entry

_TORCH_NAMES = {
    "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64",
    "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
    "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
    "b1": "bool", "f8e4m3": "float8_e4m3fn", "f8e5m2": "float8_e5m2",
}  # fmt: skip

_MOST_CPU_BYTES = 4 * 1024**3


def call(
    module: types.ModuleType,
    source: Source,
    workload: Workload,
    case: Case,
    on: str,
    prepare: Callable[[dict[str, Any]], None] | None = None,
) -> None:
    """Call the entry once with stand-ins on the device ``on`` (``meta`` or ``cpu``).

    ``prepare`` is given the arguments first. Raises whatever the user's code raises, and LoadError
    if the workload does not fit the entry.
    """
    arguments = build(case, on, Path(source.root))
    if prepare is not None:
        prepare(arguments)
    for name in workload.gradients:
        if name in arguments:
            arguments[name].requires_grad_()
    if workload.call is None and not workload.setup:
        function = entry(module, source)
        result = function(**fitting(function, arguments))
    else:
        result = _evaluate(module, source, workload, arguments)
    if workload.gradients:
        _run_backward(result)


def build(case: Case, on: str, root: Path) -> dict[str, Any]:
    """Arguments of one case by name; ``root`` is where relative paths of values begin."""
    sizes = extents(case)
    tensors = [item for item in case.arguments if isinstance(item, TensorArgument)]
    if on == "cpu" and sum(_bytes(item) for item in tensors) > _MOST_CPU_BYTES:
        message = "the entry reads values of its arguments, and they are too large to build here"
        raise LoadError(Refusal(RefusalKind.UNSUPPORTED, message))
    return {
        item.name: (
            _scalar(item, sizes) if isinstance(item, ScalarArgument) else _tensor(item, on, root)
        )
        for item in case.arguments
    }


def extents(case: Case) -> dict[str, int]:
    """Sizes of the named extents."""
    tensors = [item for item in case.arguments if isinstance(item, TensorArgument)]
    return {e.name: e.size for item in tensors for e in item.extents if e.name is not None}


def fitting(function: Callable[..., Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """Arguments under the function's own names: ``in_`` stands for a parameter called ``in``."""
    try:
        names = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return arguments
    return {
        name.rstrip("_") if name not in names and name.rstrip("_") in names else name: value
        for name, value in arguments.items()
    }


def _evaluate(
    module: types.ModuleType, source: Source, workload: Workload, arguments: dict[str, Any]
) -> Any:
    import torch

    scope = {**module.__dict__, "torch": torch, **arguments}
    for statement in workload.setup:
        exec(statement, scope)
    if workload.call is not None:
        return eval(workload.call, scope)
    function = entry(module, source)
    return function(**fitting(function, arguments))


def _run_backward(result: Any) -> None:
    import torch

    outputs = result if isinstance(result, (tuple, list)) else [result]
    for output in outputs:
        if isinstance(output, torch.Tensor) and output.requires_grad:
            output.backward(torch.ones_like(output), retain_graph=True)


def _scalar(item: ScalarArgument, sizes: dict[str, int]) -> Any:
    import torch

    scope: dict[str, Any] = {"torch": torch, "math": math, "inf": math.inf, "nan": math.nan}
    scope.update({"true": True, "false": False, "none": None, **sizes})
    try:
        return eval(item.expression, scope)
    except (NameError, SyntaxError, TypeError, ValueError, ArithmeticError) as error:
        message = f"`{item.name}={item.expression}` cannot be evaluated: {error}"
        raise LoadError(Refusal(RefusalKind.WORKLOAD, message)) from error


def _tensor(item: TensorArgument, on: str, root: Path) -> Any:
    import torch

    dtype = getattr(torch, _TORCH_NAMES[item.dtype])
    strides = item.strides
    if strides is None:
        strides = tuple(math.prod(item.shape[i + 1 :]) for i in range(len(item.shape)))
    reach = 1 + sum((n - 1) * s for n, s in zip(item.shape, strides, strict=True) if n > 0)
    storage = torch.zeros(item.offset + max(reach, 1), dtype=dtype, device=on)
    tensor = storage.as_strided(item.shape, strides, item.offset)
    return tensor if on == "meta" else _legal_values(torch, item, tensor, root)


def _legal_values(torch: Any, item: TensorArgument, tensor: Any, root: Path) -> Any:
    """Values that a host loop over offsets or lengths can work with; zeros otherwise."""
    kind, parameters = item.values.distribution, item.values.parameters
    if kind is Distribution.RECORDED and item.values.file is not None:
        return tensor.copy_(torch.load(root / item.values.file, weights_only=True))
    if kind in (Distribution.INTEGERS, Distribution.SORTED) and parameters:
        return tensor.fill_(int(parameters[-1] + parameters[0]) // 2)
    if kind is Distribution.OFFSETS and parameters:
        steps = torch.linspace(0, int(parameters[0]), tensor.numel(), dtype=torch.float64)
        return tensor.copy_(steps.long().to(tensor.dtype).reshape(item.shape))
    if kind in (Distribution.PERMUTATION, Distribution.ARANGE, Distribution.DISTINCT):
        return tensor.copy_(torch.arange(tensor.numel()).to(tensor.dtype).reshape(item.shape))
    return tensor


def _bytes(item: TensorArgument) -> int:
    return math.prod(item.shape) * 8
