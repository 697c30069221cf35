"""The input plan: on which sizes, values and layouts a candidate is compared with the baseline.

Edge shapes come from the smallest declared case, because they are about masks and bounds and not
about size. An input that is not declared counts only if the reference evaluates on it and the
baseline passes its own gate there.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from search_engine.domain.workload import Case, Role, TensorArgument, Workload
from search_engine.worker.extents import (
    Group,
    bind,
    elements,
    free_groups,
    group_of,
    groups,
    tensors,
)
from search_engine.worker.guards import contiguous_strides
from search_engine.worker.values import Variant

_PRIMES = (37, 67, 101, 131, 163)
_LONG_PRIME = 1021
_DEFAULT_TILE = 128
_MOST_ELEMENTS = 1 << 26
_LONG_ELEMENTS = 1 << 18
_SMALL_ELEMENTS = 1 << 20
"""Value variants and layouts need no more elements than this to show a mistake."""
_SCREENED_VARIANTS = (
    Variant.TRIPLED, Variant.HUNDREDTH, Variant.NEGATED, Variant.CONSTANT_ROWS, Variant.OUTLIER,
    Variant.LARGE_MEAN, Variant.DENORMALS, Variant.TIES, Variant.ZEROS, Variant.INFINITE,
    Variant.NAN,
)  # fmt: skip
REPETITIONS = 3


@dataclass(frozen=True, slots=True)
class PlannedInput:
    """One input: a case with its sizes, what is done to its values, and the seed.

    ``declared`` inputs must work; others may lie outside the baseline's domain. ``repetitions``
    counts the candidate's runs, which must agree bit for bit to be called deterministic.
    """

    case: Case
    variant: Variant
    seed: int
    declared: bool
    layout: str = ""
    misaligned: bool = False
    repetitions: int = 1

    @property
    def label(self) -> str:
        """Sizes and layout as a person reads them."""
        return f"{self.case.label} ({self.layout})" if self.layout else self.case.label


def smallest(workload: Workload) -> Case:
    """The declared case with the fewest elements."""
    return min(workload.cases, key=elements)


def odd(case: Case, chosen: tuple[Group, ...]) -> Case:
    """The case with a different prime for each chosen group, none larger than it was."""
    sizes = groups(case)
    return bind(case, {g: min(sizes[g], _prime(i)) for i, g in enumerate(chosen)})


def smoke(workload: Workload, seed: int, chosen: tuple[Group, ...]) -> tuple[PlannedInput, ...]:
    """One small odd shape with larger values, and the smallest declared case."""
    case = smallest(workload)
    first = PlannedInput(case, Variant.NORMAL, seed, True)
    if not chosen:
        return (first, PlannedInput(case, Variant.TRIPLED, seed + 1, False))
    return (PlannedInput(odd(case, chosen), Variant.TRIPLED, seed + 1, False), first)


def full(
    workload: Workload,
    seed: int,
    chosen: tuple[Group, ...],
    tiles: tuple[int, ...],
    small: Case | None = None,
) -> tuple[PlannedInput, ...]:
    """The whole plan: cheap inputs first, so that a mistake ends it early.

    ``small`` is the case for value variants and layouts.
    """
    case = smallest(workload)
    small = small or small_forms(case, chosen)[0]
    planned = [
        PlannedInput(bound, Variant.NORMAL, seed + 10 + i, False)
        for i, bound in enumerate((*edges(case, chosen, tiles), *beyond(workload, chosen)))
    ]
    planned += [
        PlannedInput(small, variant, seed + 50 + i, False)
        for i, variant in enumerate(_SCREENED_VARIANTS)
    ]
    planned += layouts(small, seed + 80)
    planned += [
        PlannedInput(item, Variant.NORMAL, seed + 90 + i, True, repetitions=REPETITIONS)
        for i, item in enumerate(sorted(workload.cases, key=elements))
    ]
    return tuple(planned)


def small_forms(case: Case, chosen: tuple[Group, ...]) -> tuple[Case, ...]:
    """Forms of a case for value variants, the preferred first; the last is the case itself."""
    if elements(case) <= _SMALL_ELEMENTS or not chosen:
        return (case,)
    sizes = groups(case)
    even = bind(case, {g: min(sizes[g], _DEFAULT_TILE) for g in chosen})
    return (odd(case, chosen), even, case)


def edges(case: Case, chosen: tuple[Group, ...], tiles: tuple[int, ...]) -> tuple[Case, ...]:
    """Shapes at which masks and bounds go wrong: around tiles, prime, 1, 0, twice the size."""
    if not chosen:
        return ()
    sizes = groups(case)
    base = {g: min(sizes[g], _prime(i)) for i, g in enumerate(chosen)}
    tile = next((t for t in tiles if t <= max(sizes.values())), _DEFAULT_TILE)
    first, last = chosen[0], chosen[-1]
    assignments: list[dict[Group, int]] = [base]
    assignments += [{**base, last: n} for n in (tile - 1, tile, tile + 1, _LONG_PRIME)]
    assignments += [{**base, first: _DEFAULT_TILE + 1}, {**base, first: _DEFAULT_TILE}]
    assignments += [{**base, group: 1} for group in chosen]
    assignments += [{**base, first: 0}]
    largest = max(chosen, key=lambda g: sizes[g])
    assignments += [{largest: 2 * sizes[largest]}]
    bound = dict.fromkeys(bind(case, assignment) for assignment in assignments)
    return tuple(item for item in bound if elements(item) <= _MOST_ELEMENTS and item != case)


def beyond(workload: Workload, chosen: tuple[Group, ...]) -> tuple[Case, ...]:
    """The smallest case with one extent just above twice its largest declared size, others small.

    A rewrite that holds a whole row, say, keeps the user's loop for rows longer than any declared
    one; only such a shape reaches it.
    """
    case = smallest(workload)
    sizes = groups(case)
    small = {g: min(sizes[g], _prime(i)) for i, g in enumerate(chosen)}
    bound = (bind(case, {**small, g: 2 * _largest(workload, case, g) + 1}) for g in chosen)
    return tuple(item for item in bound if elements(item) <= _MOST_ELEMENTS)


def _largest(workload: Workload, case: Case, group: Group) -> int:
    """The largest size that any case declares where ``case`` has this group."""
    places = {
        (item.name, axis)
        for item in tensors(case)
        for axis, extent in enumerate(item.extents)
        if group_of(extent) == group
    }
    return max(
        extent.size
        for other in workload.cases
        for item in tensors(other)
        for axis, extent in enumerate(item.extents)
        if (item.name, axis) in places
    )


def layouts(case: Case, seed: int) -> list[PlannedInput]:
    """The case with transposed, sliced and misaligned inputs."""
    planned = [
        PlannedInput(changed, Variant.NORMAL, seed + i, False, name)
        for i, (name, changed) in enumerate(
            (("transposed inputs", _restrided(case, _transposed)),
             ("rows cut from wider ones", _restrided(case, _sliced)))
        )
        if changed != case
    ]  # fmt: skip
    planned.append(PlannedInput(case, Variant.NORMAL, seed + 2, False, "misaligned", True))
    return planned


def interpreted(case: Case, chosen: tuple[Group, ...]) -> tuple[tuple[Case, ...], tuple[Case, ...]]:
    """Shrunk forms of a case for the CPU interpreter: odd ones, and powers of two to fall back on.

    Among the odd ones are few long rows and many short ones, since kernels loop along either.
    """
    if len(chosen) == 1:
        square = any(len(t.extents) > 1 for t in tensors(case))
        odd_sizes = ((131, 0), (67, 0)) if square else ((5003, 0), (331, 0))
        even_sizes = ((128, 0), (64, 0)) if square else ((4096, 0), (1024, 0))
    else:
        odd_sizes, even_sizes = ((331, 5), (7, 1100), (67, 3)), ((256, 16), (64, 64), (128, 128))
    return _forms(case, chosen, odd_sizes), _forms(case, chosen, even_sizes)


def interpreted_beyond(workload: Workload, chosen: tuple[Group, ...]) -> tuple[Case, ...]:
    """Shapes of ``beyond`` that the interpreter can bear: one extent long, the others tiny.

    Only the innermost extents, since an outer one is usually a grid axis, and a long grid takes the
    interpreter minutes.
    """
    case = smallest(workload)
    sizes = groups(case)
    inner = {group_of(t.extents[-1]) for t in tensors(case) if len(t.extents) > 1}
    tiny = {g: min(sizes[g], 2 + i) for i, g in enumerate(chosen)}
    long = ({**tiny, g: 2 * _largest(workload, case, g) + 1} for g in chosen if g in inner)
    bound = (bind(case, assignment) for assignment in long)
    return tuple(item for item in bound if elements(item) <= _LONG_ELEMENTS)


def _forms(
    case: Case, chosen: tuple[Group, ...], pairs: tuple[tuple[int, int], ...]
) -> tuple[Case, ...]:
    """The case with each pair as sizes of (innermost, other) extents; odd sizes stay distinct."""
    sizes = groups(case)
    inner = {group_of(t.extents[-1]) for t in tensors(case) if len(t.extents) > 1}
    forms: list[Case] = []
    for columns, rows in pairs:
        step = 2 if columns % 2 else 0
        wanted = {
            group: (columns if group in inner or len(chosen) == 1 else rows) + step * i
            for i, group in enumerate(chosen)
        }
        forms.append(bind(case, {g: min(sizes[g], n) for g, n in wanted.items()}))
    return tuple(f for f in dict.fromkeys(forms) if elements(f) <= _SMALL_ELEMENTS)


def candidate_groups(case: Case, has_reference: bool) -> tuple[tuple[Group, ...], ...]:
    """Sets of groups that may vary, the largest first; which are legal the reference decides.

    Without a reference only named extents vary: nothing would notice sizes that do not belong
    together.
    """
    free = free_groups(case)
    named = tuple(group for group in free if isinstance(group, str))
    options = (free, named) if has_reference else (named,)
    return tuple(dict.fromkeys(option for option in options if option))


def _prime(index: int) -> int:
    return _PRIMES[index % len(_PRIMES)]


def _restrided(case: Case, change: object) -> Case:
    assert callable(change)
    arguments = tuple(
        dataclasses.replace(item, strides=change(item.shape))
        if isinstance(item, TensorArgument)
        and item.strides is None
        and item.role is Role.INPUT
        and len(item.shape) >= 2
        else item
        for item in case.arguments
    )
    return dataclasses.replace(case, arguments=arguments)


def _transposed(shape: tuple[int, ...]) -> tuple[int, ...]:
    swapped = (*shape[:-2], shape[-1], shape[-2])
    strides = contiguous_strides(swapped)
    return (*strides[:-2], strides[-1], strides[-2])


def _sliced(shape: tuple[int, ...]) -> tuple[int, ...]:
    return contiguous_strides((*shape[:-1], shape[-1] + 24))
