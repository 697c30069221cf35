"""The truth: the declared reference in float64 on exactly widened inputs.

Without a declared reference the baseline's own result stands for it, and the evidence says that
there is no independent reference.
"""

from __future__ import annotations

import types
from dataclasses import dataclass
from typing import Any

from search_engine.domain.workload import Workload
from search_engine.worker import declared
from search_engine.worker.inputs import Inputs
from search_engine.worker.run import backward, flatten, namespace

SPREAD_SEEDS = 3
_U_F32 = 2.0**-24


class ReferenceError(Exception):
    """The reference does not evaluate, or does not yield what the entry yields."""


@dataclass(frozen=True, slots=True)
class Truth:
    """Expected values in the order of the entry's outputs: float64, integers or booleans.

    ``names`` is the buffer that an expectation belongs to, None for parts of the return value.
    """

    tensors: tuple[Any, ...]
    names: tuple[str | None, ...]
    notes: tuple[str, ...]


def evaluate(
    workload: Workload,
    module: types.ModuleType,
    inputs: Inputs,
    seed: int,
    perturbation: int | None = None,
) -> Truth:
    """Evaluate the reference. With ``perturbation`` (a seed) inputs move by one rounding error.

    Raises whatever the expression raises.
    """
    notes: list[str] = []
    inputs.restore()
    arguments = {
        name: _widened(name, value, position, workload, perturbation, notes)
        for position, (name, value) in enumerate(inputs.arguments.items())
    }
    scope = namespace(module, workload, arguments)
    names: list[str | None] = []
    tensors: list[Any] = []
    for reference in workload.references:
        made = flatten(eval(reference.expression, scope))
        names.extend([reference.output] * len(made))
        tensors.extend(made)
    tensors = [declared.plain(tensor) for tensor in tensors]
    if workload.gradients:
        backward(tensors, seed)
        grads = [arguments[name].leaf.grad for name in workload.gradients]
        kept = [grad for grad in grads if grad is not None]
        names.extend([None] * len(kept))
        tensors.extend(kept)
    return Truth(tuple(t.detach() for t in tensors), tuple(names), tuple(dict.fromkeys(notes)))


def align(truth: Truth, output_names: tuple[str, ...]) -> tuple[Any, ...]:
    """Expected tensors in the order of the outputs. Raises ReferenceError if they do not match."""
    by_name = {name: t for name, t in zip(truth.names, truth.tensors, strict=True) if name}
    unnamed = [t for name, t in zip(truth.names, truth.tensors, strict=True) if not name]
    ordered: list[Any] = []
    for name in output_names:
        if name in by_name:
            ordered.append(by_name.pop(name))
        elif unnamed:
            ordered.append(unnamed.pop(0))
        else:
            raise ReferenceError(f"the reference says nothing about output `{name}`")
    if unnamed or by_name:
        extra = len(unnamed) + len(by_name)
        raise ReferenceError(f"the reference yields {extra} more outputs than the entry")
    return tuple(ordered)


def spread(
    workload: Workload,
    module: types.ModuleType,
    inputs: Inputs,
    seed: int,
    expected: tuple[Any, ...],
    output_names: tuple[str, ...],
) -> tuple[Any, ...]:
    """How far each output moves when every input moves by one rounding error of float32.

    The largest absolute change over ``SPREAD_SEEDS`` draws; this is what cancellation hides.
    Zeros for outputs that are not floating point.
    """
    import torch

    most = [torch.zeros_like(t, dtype=torch.float64) for t in expected]
    for draw in range(SPREAD_SEEDS):
        moved = align(evaluate(workload, module, inputs, seed, seed + 17 + draw), output_names)
        for i, (now, before) in enumerate(zip(moved, expected, strict=True)):
            if before.dtype.is_floating_point:
                change = (now - before).abs().nan_to_num_(0.0, 0.0, 0.0)
                most[i] = torch.maximum(most[i], change)
    return tuple(most)


def why_no_oracle(first: tuple[Any, ...], second: tuple[Any, ...]) -> str | None:
    """Why outputs on two different inputs cannot tell right from wrong, or None if they can."""
    import torch

    considered = [(a, b) for a, b in zip(first, second, strict=True) if a.numel() > 0]
    if not considered:
        return "the output is empty"
    if all(torch.equal(a, b) for a, b in considered):
        return "the output does not depend on the inputs"
    if all(a.numel() > 1 and bool((a == a.reshape(-1)[0]).all()) for a, _ in considered):
        return "every element of the output is the same"
    floats = [a for a, _ in considered if a.dtype.is_floating_point]
    if len(floats) == len(considered):
        tiny = float(torch.finfo(torch.float32).tiny)
        if all(float(a.abs().nan_to_num(0.0, 0.0, 0.0).max()) < tiny for a in floats):
            return "the output is too small to be judged"
    return None


def _widened(
    name: str,
    value: Any,
    position: int,
    workload: Workload,
    perturbation: int | None,
    notes: list[str],
) -> Any:
    import torch

    if not isinstance(value, torch.Tensor):
        return value
    if not value.dtype.is_floating_point:
        return value.clone()
    wide = value.detach().to(torch.float64, copy=True)
    if perturbation is not None:
        generator = torch.Generator(device=value.device).manual_seed(perturbation * 31 + position)
        signs = torch.randint(0, 2, value.shape, generator=generator, device=value.device)
        wide.mul_(1.0 + _U_F32 * (2 * signs - 1))
    if name in workload.gradients:
        wide.requires_grad_()
    made = declared.declare(wide, value.dtype, notes)
    made.leaf = wide  # gradients collect in the leaf, not in its alias
    return made
