"""Give a case other sizes: which extents vary together, and what must follow them.

A *group* is what varies as one: the extents of one name, or the unnamed extents of one size. An
extent stays as it is if a literal scalar has its size (the kernel would be told the old size) or
a tensor with recorded values has it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import TypeAlias

from search_engine.domain.workload import (
    Argument,
    Case,
    Distribution,
    Extent,
    ScalarArgument,
    TensorArgument,
    Values,
)

Group: TypeAlias = str | int
"""A name, or the size of unnamed extents."""


def group_of(extent: Extent) -> Group:
    """The group that an extent belongs to."""
    return extent.name if extent.name is not None else extent.size


def groups(case: Case) -> dict[Group, int]:
    """Every group with its size, in order of appearance."""
    return {group_of(e): e.size for item in tensors(case) for e in item.extents}


def free_groups(case: Case) -> tuple[Group, ...]:
    """Groups that may be given other sizes, in order of appearance."""
    literal = {_integer(item) for item in case.arguments if isinstance(item, ScalarArgument)}
    fixed: set[Group] = set()
    for item in tensors(case):
        pinned = item.values.distribution is Distribution.RECORDED or (
            item.strides is not None and not _dense(item)
        )
        if pinned:
            fixed.update(group_of(e) for e in item.extents)
    return tuple(g for g, size in groups(case).items() if g not in fixed and size not in literal)


def pinned_groups(case: Case) -> tuple[Group, ...]:
    """Groups that keep their size."""
    free = free_groups(case)
    return tuple(group for group in groups(case) if group not in free)


def tensors(case: Case) -> list[TensorArgument]:
    """The tensor arguments of a case."""
    return [item for item in case.arguments if isinstance(item, TensorArgument)]


def elements(case: Case) -> int:
    """Elements of all tensor arguments together."""
    return sum(math.prod(item.shape) for item in tensors(case))


def bind(case: Case, sizes: Mapping[Group, int]) -> Case:
    """The case with other sizes for some groups.

    Ranges of integers that can be indices into a shrunk extent shrink with it, so that they stay
    legal; strides of dense layouts follow the sizes.
    """
    changed = {g: sizes[g] for g in groups(case) if g in sizes}
    arguments = tuple(
        item if isinstance(item, ScalarArgument) else _bound(item, case, changed)
        for item in case.arguments
    )
    return dataclasses.replace(case, arguments=arguments)


def widen(case: Case) -> tuple[Case, tuple[str, ...]]:
    """The case with f32 instead of bf16 and fp8 tensors, and the names of those tensors."""
    names: list[str] = []
    arguments: list[Argument] = []
    for item in case.arguments:
        if isinstance(item, TensorArgument) and item.dtype in ("bf16", "f8e4m3", "f8e5m2"):
            names.append(item.name)
            arguments.append(dataclasses.replace(item, dtype="f32"))
        else:
            arguments.append(item)
    return dataclasses.replace(case, arguments=tuple(arguments)), tuple(names)


def _bound(item: TensorArgument, case: Case, sizes: Mapping[Group, int]) -> TensorArgument:
    extents = tuple(Extent(sizes.get(group_of(e), e.size), e.name) for e in item.extents)
    strides = None if item.strides is None else _restride(item, extents)
    values = _legal(item, case, sizes)
    return dataclasses.replace(item, extents=extents, strides=strides, values=values)


def _restride(item: TensorArgument, extents: tuple[Extent, ...]) -> tuple[int, ...]:
    """The same order of dimensions, dense for the new sizes; strides of 0 stay 0."""
    assert item.strides is not None
    order = sorted(range(len(extents)), key=lambda i: (item.strides or ())[i])
    strides, step = [0] * len(extents), 1
    for i in order:
        if item.strides[i] != 0:
            strides[i] = step
            step *= max(extents[i].size, 1)
    return tuple(strides)


def _dense(item: TensorArgument) -> bool:
    old = tuple(s for s in item.strides or ())
    return old == _restride(item, item.extents)


def _legal(item: TensorArgument, case: Case, sizes: Mapping[Group, int]) -> Values:
    """Values that index nothing outside the new sizes of the other tensors."""
    values = item.values
    if values.distribution is Distribution.OFFSETS:
        total = int(values.parameters[0])
        return dataclasses.replace(values, parameters=(float(sizes.get(total, total)),))
    if values.distribution not in (Distribution.INTEGERS, Distribution.SORTED):
        return values
    low, high = values.parameters
    others = [other for other in tensors(case) if other.name != item.name]
    limits = [
        sizes[group_of(e)] - 1
        for other in others
        for e in other.extents
        if group_of(e) in sizes and sizes[group_of(e)] < e.size and e.size > high
    ]
    new_high = max(min([high, *map(float, limits)]), low)
    return dataclasses.replace(values, parameters=(low, new_high))


def _integer(item: ScalarArgument) -> int | None:
    text = item.expression.replace("_", "")
    return int(text) if text.isdecimal() and int(text) > 1 else None
