"""Iterations whose result a ``tl.where`` throws away in every lane, as causal kernels have them.

Such a kernel loads and multiplies every tile and then replaces the scores above the diagonal by
minus infinity. No load is masked, so only the condition tells: it is evaluated for tiles spread
over the grid and the loop, with the sizes of the launch.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from search_engine.domain.code import LaunchCode
from search_engine.findings._base import Subject
from search_engine.findings._intervals import Intervals
from search_engine.findings._source import called_name, function_of

_ITERATIONS = 32
"""Of a loop that are looked at."""
_PROGRAMS = {1: 32, 2: 12, 3: 6}
"""Along each axis that are looked at, by the number of axes that matter."""
_GOLDEN = 0.618
_MINUS_INFINITY = -1e4
"""Scores at or below this vanish in an exponential."""


@dataclass(frozen=True, slots=True)
class MaskedTiles:
    """A loop by its 0-based header line, and the share of its iterations that come to nothing."""

    line: int
    share: float


def masked_tiles(subject: Subject, code: LaunchCode) -> Iterator[MaskedTiles]:
    """Loops of the kernel whose ``tl.where`` is false in all lanes of some iterations."""
    function = function_of(subject, subject.unit.kernel)
    if function is None:
        return
    known = Intervals(function, _arguments(code), code.facts.grid)
    for loop in ast.walk(function):
        if isinstance(loop, ast.For) and isinstance(loop.target, ast.Name):
            masks = _masks(loop)
            if masks and not _stores(loop):
                share = _share(known, loop, loop.target.id, masks, code.facts.grid)
                if share is not None:
                    yield MaskedTiles(loop.lineno - 1, share)


@dataclass(frozen=True, slots=True)
class _Mask:
    """The condition of a ``where`` and the branches, with their outcome, that lead to it."""

    condition: ast.expr
    keeps_where_true: bool
    branches: tuple[tuple[ast.expr, bool], ...]


def _arguments(code: LaunchCode) -> dict[str, int]:
    texts = dict(code.facts.constants)
    texts |= {item.name: item.value for item in code.arguments if item.value is not None}
    return {name: value for name, text in texts.items() if (value := _integer(text)) is not None}


def _integer(text: str) -> int | None:
    if text in ("True", "False"):
        return int(text == "True")
    try:
        return int(text)
    except ValueError:
        return None


def _masks(loop: ast.For) -> list[_Mask]:
    return list(_masks_in(loop.body, ()))


def _masks_in(body: list[ast.stmt], branches: tuple[tuple[ast.expr, bool], ...]) -> Iterator[_Mask]:
    for statement in body:
        if isinstance(statement, ast.If):
            yield from _masks_in(statement.body, (*branches, (statement.test, True)))
            yield from _masks_in(statement.orelse, (*branches, (statement.test, False)))
        elif not isinstance(statement, ast.For | ast.While):
            for node in ast.walk(statement):
                mask = _mask(node, branches) if isinstance(node, ast.Call) else None
                if mask is not None:
                    yield mask


def _mask(node: ast.Call, branches: tuple[tuple[ast.expr, bool], ...]) -> _Mask | None:
    if called_name(node) != "where" or len(node.args) != 3:
        return None
    condition, kept, other = node.args
    if _vanishes(other):
        return _Mask(condition, True, branches)
    return _Mask(condition, False, branches) if _vanishes(kept) else None


def _vanishes(node: ast.expr) -> bool:
    """Minus infinity as people write it."""
    text = ast.unparse(node).replace('"', "'").replace(" ", "").lower()
    if "inf" in text:
        return text in ("-float('inf')", "float('-inf')", "-math.inf", "-torch.inf", "-tl.inf")
    try:
        return float(text) <= _MINUS_INFINITY
    except ValueError:
        return False


def _stores(loop: ast.For) -> bool:
    names = (called_name(node) or "" for node in ast.walk(loop))
    return any(name == "store" or name.startswith("atomic_") for name in names)


def _share(
    known: Intervals, loop: ast.For, variable: str, masks: list[_Mask], grid: tuple[int, int, int]
) -> float | None:
    """Share of iterations over the whole grid; None where bounds or conditions are not known."""
    known.axes.clear()
    if _dead_in(known, loop, variable, masks, (0, 0, 0)) is None or not known.axes:
        return None
    most = _PROGRAMS[len(known.axes)]
    axes = [_spread(size, most) if axis in known.axes else [0] for axis, size in enumerate(grid)]
    dead = total = 0.0
    for x, y, z in itertools.product(*axes):
        found = _dead_in(known, loop, variable, masks, (x, y, z))
        if found is None:
            return None
        dead, total = dead + found[0], total + found[1]
    return dead / total if total else None


def _dead_in(
    known: Intervals,
    loop: ast.For,
    variable: str,
    masks: list[_Mask],
    program: tuple[int, int, int],
) -> tuple[float, int] | None:
    """Iterations of one program that come to nothing, and all of them."""
    known.place(program, {})
    bounds = _bounds(known, loop.iter)
    if bounds is None:
        return None
    steps = range(*bounds)
    looked_at = _spread(len(steps), _ITERATIONS)
    dead = 0
    for index in looked_at:
        known.place(program, {variable: steps[index]})
        dead += any(_all_off(known, mask) for mask in masks)
    return dead * len(steps) / max(1, len(looked_at)), len(steps)


def _all_off(known: Intervals, mask: _Mask) -> bool:
    if any(known.truth(test) is not outcome for test, outcome in mask.branches):
        return False
    return known.truth(mask.condition) is (not mask.keeps_where_true)


def _bounds(known: Intervals, header: ast.expr) -> tuple[int, int, int] | None:
    if not isinstance(header, ast.Call) or called_name(header) not in ("range", "static_range"):
        return None
    values = [known.integer(item) for item in header.args]
    found = [value for value in values if value is not None]
    if not found or len(found) != len(values) or len(found) > 3:
        return None
    start, stop, step = (0, found[0], 1) if len(found) == 1 else (*found, 1)[:3]
    return (start, stop, step) if step > 0 else None


def _spread(extent: int, most: int) -> list[int]:
    """At most ``most`` of the numbers below ``extent``: one from each part, at no fixed step.

    A fixed step could agree with the period of a remainder (``pid % n_tiles``).
    """
    if extent <= most:
        return list(range(extent))
    return [int((part + _GOLDEN * part % 1) * extent / most) for part in range(most)]
