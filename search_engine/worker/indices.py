"""Outputs that are indices of extremes: argmax, argmin and top-k in the declared reference.

Such an output is compared by the values it picks: another index is right where those are equal, if
the user allows any tie.
"""

from __future__ import annotations

import ast
import types
from dataclasses import dataclass
from typing import Any

from search_engine.domain.workload import Workload
from search_engine.worker import declared
from search_engine.worker.attempt import Attempt
from search_engine.worker.inputs import Inputs
from search_engine.worker.judge_types import Miss
from search_engine.worker.run import namespace

_EXTREMES = ("argmax", "argmin", "topk")


@dataclass(frozen=True, slots=True)
class Picked:
    """The tensor that indices pick from, and along which dimension; None means flattened."""

    values: Any
    dimension: int | None


def picked_from(
    workload: Workload, module: types.ModuleType, inputs: Inputs, position: int
) -> Picked | None:
    """What output ``position`` picks from, or None if the reference does not say so."""
    call = _extreme(workload, position)
    if call is None:
        return None
    function = call.func
    assert isinstance(function, ast.Attribute)
    is_method = not (isinstance(function.value, ast.Name) and function.value.id == "torch")
    operands = [function.value, *call.args] if is_method else list(call.args)
    if not operands:
        return None
    inputs.restore()
    with Attempt():
        scope = namespace(module, workload, inputs.arguments)
        values = declared.plain(_value(operands[0], scope)).double()
        return Picked(values, _dimension(function.attr, call, operands, scope))
    return None


def judge(picked: Picked, expected: Any, got: Any, any_tie: bool) -> Miss | None:
    """The first index that is invalid, repeated, or picks another value; ties only if allowed."""
    import torch

    values, dimension = picked.values, picked.dimension
    if dimension is None:
        values, dimension = values.reshape(-1), 0
    size = values.shape[dimension]
    ours, theirs = got.long(), expected.long()
    wrong = (ours < 0) | (ours >= size)
    if not bool(wrong.any()):
        shape = values.dim() != ours.dim()
        one, other = (t.unsqueeze(dimension) if shape else t for t in (ours, theirs))
        differs = values.gather(dimension, one) != values.gather(dimension, other)
        if not any_tie:
            differs |= one != other
        if one.shape[dimension] > 1:
            ordered = one.sort(dimension).values
            repeated = (ordered.diff(dim=dimension) == 0).any(dimension, keepdim=True)
            differs |= repeated
        wrong = differs.squeeze(dimension) if shape else differs
    if not bool(wrong.any()):
        return None
    first = tuple(int(n) for n in torch.nonzero(wrong)[0]) if wrong.dim() else ()
    reason = "the index picks another value" if any_tie else "the index differs"
    return Miss(first, float(ours[first]), float(theirs[first]), 0.0, reason)


def _extreme(workload: Workload, position: int) -> ast.Call | None:
    """The only call of an extreme in the reference that yields this output."""
    unnamed = [r.expression for r in workload.references]
    text = unnamed[position] if position < len(unnamed) > 1 else unnamed[0]
    calls = [
        node
        for node in ast.walk(ast.parse(text, mode="eval"))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _EXTREMES
    ]
    return calls[0] if len(calls) == 1 else None


def _dimension(
    name: str, call: ast.Call, operands: list[ast.expr], scope: dict[str, Any]
) -> int | None:
    """The ``dim`` argument: second for arg-extremes, third (and -1 by default) for top-k."""
    for keyword in call.keywords:
        if keyword.arg == "dim":
            return _value(keyword.value, scope)
    place = 2 if name == "topk" else 1
    if len(operands) > place:
        return _value(operands[place], scope)
    return -1 if name == "topk" else None


def _value(expression: ast.expr, scope: dict[str, Any]) -> Any:
    return eval(compile(ast.Expression(expression), "<reference>", "eval"), scope)
