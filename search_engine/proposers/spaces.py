"""Configurations worth trying first, by the kind of kernel, most promising first.

A point gives an integer to each name; names that a point leaves out keep their value.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from search_engine.domain.target import Target
from search_engine.proposers.limits import DotTile, max_warps

Point: TypeAlias = dict[str, int]

_MATMUL_NVIDIA = (
    (128, 256, 64, 8, 3), (128, 128, 64, 4, 4), (64, 256, 32, 4, 4), (256, 128, 64, 8, 3),
    (128, 128, 64, 8, 3), (128, 256, 64, 8, 4), (128, 64, 64, 4, 4), (64, 128, 64, 4, 4),
    (128, 128, 32, 4, 4), (64, 64, 64, 4, 4), (256, 64, 32, 4, 4), (128, 64, 32, 4, 4),
    (64, 128, 32, 4, 4), (64, 64, 32, 2, 5), (32, 64, 64, 4, 4), (64, 32, 32, 2, 5),
)  # fmt: skip
"""(rows, columns, summed extent, warps, stages): large tiles for warpgroup matrix instructions
first, then ever smaller ones that fill the processors when the matrix is small."""
_MATMUL_AMD = (
    (256, 256, 64, 8, 2), (128, 128, 64, 4, 2), (256, 128, 64, 8, 2), (128, 256, 64, 8, 2),
    (128, 128, 32, 4, 2), (128, 64, 64, 4, 2), (64, 128, 64, 4, 2), (64, 64, 64, 4, 2),
    (128, 128, 64, 8, 2), (64, 64, 128, 4, 2), (256, 64, 32, 4, 2), (32, 64, 64, 2, 2),
)  # fmt: skip
_SKINNY = (
    (16, 128, 128, 4, 4), (16, 64, 128, 4, 5), (16, 64, 256, 4, 3), (32, 128, 64, 4, 4),
    (128, 16, 128, 4, 4), (64, 16, 128, 4, 5), (16, 32, 256, 2, 4), (16, 128, 64, 4, 5),
)  # fmt: skip
"""For matrices with few rows or columns, which stream the other operand."""
_ATTENTION = (
    (128, 64, 8, 3), (128, 64, 4, 3), (128, 128, 8, 2), (128, 128, 8, 3), (64, 64, 4, 3),
    (128, 32, 4, 4), (64, 128, 4, 2), (64, 32, 4, 4), (128, 64, 4, 2), (64, 64, 4, 4),
)  # fmt: skip
"""(rows held, columns of the loop, warps, stages)."""
_FLAT = (1024, 2048, 4096, 512, 8192, 256, 16384)
_ELEMENTS_PER_THREAD = (8, 4, 16, 32, 2)
"""8 elements of 16 bits are one 128-bit access; the others trade loads in flight for registers."""
_TILE_ELEMENTS = (4096, 2048, 8192, 1024, 16384, 32768)


@dataclass(frozen=True, slots=True)
class Extents:
    """Powers of two that just cover an axis of the workload's tensors, largest first."""

    inner: tuple[int, ...]
    """Of the last axes, which are contiguous in most tensors."""
    outer: tuple[int, ...]


def matmul_points(
    tile: DotTile, group: str | None, skinny: bool, target: Target
) -> Iterator[Point]:
    """The curated list crossed with the group size."""
    shapes = _MATMUL_AMD if target.vendor == "amd" else _MATMUL_NVIDIA
    if skinny:
        shapes = (*_SKINNY, *shapes)
    for size in (8, 4, 16) if group else (0,):
        for m, n, k, warps, stages in shapes:
            point = _named((tile.m, m), (tile.n, n), (tile.k, k), (group, size))
            yield point | {"num_warps": warps, "num_stages": stages}


def attention_points(tile: DotTile, target: Target) -> Iterator[Point]:
    """Two tunable extents: the rows that a program holds and the columns of its loop."""
    for m, n, warps, stages in _ATTENTION:
        depth = min(stages, 2) if target.vendor == "amd" else stages
        yield _named((tile.m, m), (tile.n or tile.k, n)) | {
            "num_warps": warps,
            "num_stages": depth,
        }


def line_points(
    name: str, looped: bool, beside: int, extents: Extents, target: Target
) -> Iterator[Point]:
    """One block extent, beside other extents of ``beside`` elements.

    A block that is repeated by a loop is best as long as the row, so that the loop runs once, and
    with 16 or 32 elements a thread: on an H200 that gave softmax, RMS norm and layer norm of rows
    of 8 192 their best time, 1.03 to 1.2 times as fast as with 8.
    """
    blocks = [*extents.inner, *_FLAT, *extents.outer] if looped else list(_FLAT)
    if beside > 1:
        blocks = [max(1, total // beside) for total in _TILE_ELEMENTS]
    ordered = list(dict.fromkeys(blocks))
    if looped and beside == 1:
        for per_thread in (16, 8, 32):
            yield {name: ordered[0], "num_warps": _warps(ordered[0], per_thread, target)}
    for per_thread in _ELEMENTS_PER_THREAD:
        for block in ordered:
            yield {name: block, "num_warps": _warps(block * beside, per_thread, target)}


def square_points(name: str, target: Target) -> Iterator[Point]:
    """One extent that spans both axes of a block."""
    for per_thread in (16, 8, 32):
        for side in (64, 32, 128, 16):
            yield {name: side, "num_warps": _warps(side * side, per_thread, target)}


def tile_points(first: str, second: str, target: Target) -> Iterator[Point]:
    """Two block extents of a kernel without a matrix product, in both aspect ratios."""
    for per_thread in (16, 8, 32):
        for elements in _TILE_ELEMENTS:
            for a, b in _factors(elements):
                yield {first: a, second: b, "num_warps": _warps(elements, per_thread, target)}


def option_points(elements: int | None, target: Target) -> Iterator[Point]:
    """Only options can vary: warps, near what ``elements`` a block suggests."""
    powers = [1 << e for e in range(max_warps(target).bit_length())]
    best = _warps(elements, 8, target) if elements else 4
    for warps in sorted(powers, key=lambda w: (abs(w.bit_length() - best.bit_length()), -w)):
        yield {"num_warps": warps}


def spread(points: Iterator[Point], limit: int) -> list[Point]:
    """At most ``limit`` distinct points, in order."""
    kept: dict[tuple[tuple[str, int], ...], Point] = {}
    for point in itertools.islice(points, 16 * limit):
        kept.setdefault(tuple(sorted(point.items())), point)
        if len(kept) == limit:
            break
    return list(kept.values())


def _warps(elements: int, per_thread: int, target: Target) -> int:
    wanted = max(1, elements // (per_thread * target.warp_size))
    return min(1 << (wanted.bit_length() - 1), max_warps(target))


def _factors(elements: int) -> list[tuple[int, int]]:
    """Pairs of powers of two, square first, then both aspect ratios ever more extreme."""
    exponent = elements.bit_length() - 1
    pairs = [(1 << e, 1 << (exponent - e)) for e in range(exponent + 1)]
    return sorted(pairs, key=lambda pair: (abs(pair[0].bit_length() - pair[1].bit_length()), pair))


def _named(*items: tuple[str | None, int]) -> Point:
    return {name: value for name, value in items if name is not None}
