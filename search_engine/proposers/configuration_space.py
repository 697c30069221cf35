"""The configurations of one unit for one workload and target, in the order worth trying."""

from __future__ import annotations

import ast
import dataclasses
import itertools
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass

from search_engine.domain.candidate import Assignment
from search_engine.domain.ports import ProposalContext
from search_engine.domain.target import Target
from search_engine.domain.workload import Case, TensorArgument, Workload
from search_engine.proposers.autotune import config_list
from search_engine.proposers.blocks import Blocks, read_blocks
from search_engine.proposers.limits import (
    DotTile,
    block_fits,
    default_option,
    dot_fits,
    max_warps,
    operand_bytes,
)
from search_engine.proposers.sites import integer
from search_engine.proposers.spaces import (
    Extents,
    Point,
    attention_points,
    line_points,
    matmul_points,
    option_points,
    spread,
    square_points,
    tile_points,
)
from search_engine.proposers.tunable_types import Purpose, Tunable, TunableKind
from search_engine.proposers.tunables import UnitTunables, read_tunables

_NEIGHBOUR_SHARE = 4
"""One point in four is a random neighbour, so that a wrong list is not the end of the search."""


@dataclass(frozen=True, slots=True)
class Space:
    """The configurations of one unit for one workload and target."""

    context: ProposalContext
    source: UnitTunables
    tunables: tuple[Tunable, ...]
    """Those whose value takes effect for this workload, within the limits of the target."""
    present: Point
    blocks: Blocks
    case: Case
    taken: tuple[Point, ...]
    """Configurations of the user's own autotune list."""

    def ordered(self, rng: random.Random, limit: int) -> Iterator[tuple[Assignment, ...]]:
        """Listed points with a random neighbour after every few of them."""
        listed = [point for point in spread(self._listed(), 8 * limit) if self._allowed(point)]
        listed = listed[: 2 * limit]
        drawn = self._neighbours(rng, listed)
        for index, point in enumerate(listed, start=1):
            yield self._assignments(point)
            if index % (_NEIGHBOUR_SHARE - 1) == 0:
                yield from (self._assignments(point) for point in itertools.islice(drawn, 1))
        yield from (self._assignments(point) for point in drawn)

    def _listed(self) -> Iterator[Point]:
        tiles = self._tiles()
        target = self.context.target
        if self.blocks.dots:
            tile = self._dot_tile()
            names = [name for name in (tile.m, tile.n, tile.k) if name is not None]
            if len(names) == 3:
                yield from matmul_points(tile, self._group(), self._skinny(), target)
            elif len(names) == 2:
                yield from attention_points(tile, target)
        elif len(tiles) == 1 and self._degree(tiles[0]) > 1:
            yield from square_points(tiles[0], target)
        elif len(tiles) == 1:
            looped = tiles[0] in self.blocks.looped
            yield from line_points(tiles[0], looped, self._covered(), self._extents(), target)
        elif len(tiles) >= 2:
            yield from tile_points(tiles[-2], tiles[-1], target)
        else:
            yield from option_points(self._covered(), target)

    def _allowed(self, point: Point) -> bool:
        """On every ladder, within the limits, neither the present point nor one of the user's."""
        for name, value in point.items():
            tunable = self._tunable(name)
            if tunable is None or (value not in tunable.ladder and value != tunable.number):
                # Options that this unit lacks are no reason to drop the rest of a point.
                if name in ("num_warps", "num_stages"):
                    continue
                return False
        full = self.present | point
        if full == self.present or any(full.items() >= own.items() for own in self.taken):
            return False
        return self._fits(full)

    def _fits(self, full: Point) -> bool:
        target = self.context.target
        warps = full.get("num_warps", default_option(target, "num_warps"))
        stages = full.get("num_stages", default_option(target, "num_stages"))
        tiles = [name for name in self._tiles() if name in full]
        if not self.blocks.dots and not tiles:
            return warps <= max_warps(target)  # only options vary, and the block fits as it is
        if not self.blocks.dots:
            elements = math.prod(full[name] ** self._degree(name) for name in tiles)
            return block_fits(target, elements * self._covered(), warps)
        tile = self._dot_tile()
        shape = [full.get(name, 64) if name else 64 for name in (tile.m, tile.n, tile.k)]
        bytes_each = operand_bytes(self.case)
        return dot_fits(target, (shape[0], shape[1], shape[2]), warps, stages, bytes_each)

    def _neighbours(self, rng: random.Random, listed: list[Point]) -> Iterator[Point]:
        """Points one or two ladder steps away from the present values or from a listed point."""
        movable = [tunable for tunable in self.tunables if len(tunable.ladder) > 1]
        seen = {tuple(sorted(point.items())) for point in listed}
        tries = 200 if movable else 0
        for _ in range(tries):
            start = rng.choice(listed[:8]) if listed and rng.random() < 0.7 else {}
            point = dict(start)
            for tunable in rng.sample(movable, min(len(movable), rng.choice((1, 1, 2)))):
                point[tunable.name] = self._step(tunable, point, rng)
            key = tuple(sorted(point.items()))
            if key not in seen and self._allowed(point):
                seen.add(key)
                yield point

    def _step(self, tunable: Tunable, point: Point, rng: random.Random) -> int:
        default = default_option(self.context.target, tunable.name)
        value = point.get(tunable.name, tunable.number or default)
        nearest = min(tunable.ladder, key=lambda step: (abs(step - value), step))
        index = tunable.ladder.index(nearest) + rng.choice((-1, 1))
        return tunable.ladder[max(0, min(index, len(tunable.ladder) - 1))]

    def _assignments(self, point: Point) -> tuple[Assignment, ...]:
        """Only what differs from the present text."""
        return tuple(
            Assignment(name, str(value))
            for name, value in point.items()
            if (tunable := self._tunable(name)) is not None
            and self.present.get(name) != value
            and tunable.ladder
        )

    def _tunable(self, name: str) -> Tunable | None:
        return next((tunable for tunable in self.tunables if tunable.answers_to(name)), None)

    def _tiles(self) -> list[str]:
        return [
            tunable.name
            for tunable in self.tunables
            if tunable.purpose is Purpose.TILE and tunable.ladder and "." not in tunable.name
        ]

    def _degree(self, name: str) -> int:
        """2 for an extent that is repeated along two axes of the grid: it spans a square."""
        return max(1, len(self.blocks.axes.get(name, ())))

    def _group(self) -> str | None:
        names = (t.name for t in self.tunables if t.purpose is Purpose.GROUP and t.ladder)
        return next(names, None)

    def _dot_tile(self) -> DotTile:
        """Rows and columns are the extents of the accumulator; the summed axis is the loop's."""
        tiles = self._tiles()
        shape = next((s for s in self.blocks.accumulators if len(s) == 2), ())
        m, n = (*shape, "", "")[:2]
        rest = [name for name in tiles if name not in shape]
        k = next((name for name in rest if name in self.blocks.looped), None)
        return DotTile(m if m in tiles else None, n if n in tiles else None, k)

    def _covered(self) -> int:
        """Elements that a block spans beside its tunable extents, as far as the text tells."""
        names = self.blocks.shaped - self.blocks.fallbacks - set(self._tiles())
        numbers = {t.name: t.number for t in self.tunables if t.number is not None}
        known = math.prod(numbers[name] for name in names if name in numbers)
        return known * (min(self._extents().inner, default=1) if names - set(numbers) else 1)

    def _extents(self) -> Extents:
        shapes = [a.shape for a in self.case.arguments if isinstance(a, TensorArgument) and a.shape]
        inner = sorted({shape[-1] for shape in shapes}, reverse=True)
        outer = sorted({size for shape in shapes for size in shape[:-1]}, reverse=True)
        return Extents(
            tuple(dict.fromkeys(covering_power(size) for size in inner)),
            tuple(dict.fromkeys(covering_power(size) for size in outer)),
        )

    def _skinny(self) -> bool:
        """A matrix with an extent below the smallest tile of the usual list."""
        sizes = [
            size
            for argument in self.case.arguments
            if isinstance(argument, TensorArgument) and len(argument.shape) >= 2
            for size in argument.shape[-2:]
        ]
        return bool(sizes) and min(sizes) <= 32


def read_space(context: ProposalContext) -> Space:
    """The space of a context. Raises SyntaxError if the text does not parse, ValueError if the
    kernel is not in it."""
    source = read_tunables(context.module, context.unit)
    kernel = source.sites.kernels.get(context.unit.kernel.name)
    if kernel is None:
        raise ValueError(f"kernel {context.unit.kernel.name} is not in the text")
    limit, blocks = max_warps(context.target), read_blocks(kernel)
    tunables = tuple(
        _capped(tunable, limit)
        for tunable in source.tunables
        if not _given(tunable, context.workload) and tunable.name not in blocks.fallbacks
    )
    configs = config_list(source.sites.tree, kernel)
    taken = () if configs is None else tuple(_numbers(s.values()) for s in configs.settings)
    return Space(
        context=context,
        source=source,
        tunables=tunables,
        present=_present(tunables, context.target),
        blocks=blocks,
        case=max(context.workload.cases, key=lambda case: case.weight),
        taken=taken,
    )


def covering_power(size: int) -> int:
    """The smallest power of two that is at least ``size``."""
    return 1 << max(0, size - 1).bit_length()


def _capped(tunable: Tunable, warps: int) -> Tunable:
    if tunable.purpose is not Purpose.WARPS:
        return tunable
    ladder = tuple(value for value in tunable.ladder if value <= warps)
    return dataclasses.replace(tunable, ladder=ladder)


def _present(tunables: tuple[Tunable, ...], target: Target) -> Point:
    """The values of the text, with Triton's own where an option is absent."""
    point: Point = {}
    for tunable in tunables:
        if tunable.number is not None:
            point[tunable.name] = tunable.number
        elif tunable.value is None:
            option = tunable.name.rpartition(".")[2]
            point[tunable.name] = default_option(target, option)
    return point


def _given(tunable: Tunable, workload: Workload) -> bool:
    """True for a default of the entry that the workload overrides: changing it would do nothing."""
    if tunable.kind is not TunableKind.ENTRY_DEFAULT:
        return False
    names = {argument.name for case in workload.cases for argument in case.arguments}
    return any(tunable.answers_to(name) for name in names)


def _numbers(values: dict[str, str]) -> Point:
    parsed = {name: integer(ast.parse(text, mode="eval").body) for name, text in values.items()}
    return {name: number for name, number in parsed.items() if number is not None}
