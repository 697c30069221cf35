"""Dots of a kernel as the compiler lowered them."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable

from search_engine.domain.code import DotCode, MatrixPath
from search_engine.worker.code_places import Place, UserText
from search_engine.worker.ir_text import IrOperation
from search_engine.worker.ir_types import shaped_types

DOTS = (
    "tt.dot",
    "tt.dot_scaled",
    "ttng.warp_group_dot",
    "ttng.tc_gen5_mma",
    "ttng.tc_gen5_mma_scaled",
)
"""Operations that multiply tiles. Types are those of A and B first; then the accumulator's."""

_MATRIX_ENCODING = re.compile(r"nvidia_mma|amd_mfma|amd_wmma|tensor_memory")
_PRECISION = re.compile(r"inputPrecision = (\w+)")
_PRECISE_BY_DEFAULT = "ieee"


def dots(
    lowered: Iterable[IrOperation],
    original: Iterable[IrOperation],
    encodings: dict[str, str],
    user: UserText,
) -> tuple[DotCode, ...]:
    """One entry for each dot of the source, at its greatest loop depth, in the order of the code.

    A pipelined loop has copies of its dots before or behind it, and a precise one becomes several
    of the unit's own. ``original`` is TTIR, where the precision that was asked for still stands.
    """
    asked = {item.chain: _precision(item) for item in original if item.name in DOTS}
    found: dict[DotCode, DotCode] = {}
    for item in lowered:
        if item.name in DOTS:
            dot = _dot(item, asked, encodings, user)
            if dot is not None:
                key = dataclasses.replace(dot, loop_depth=0)
                deepest = max(dot.loop_depth, found[key].loop_depth if key in found else 0)
                found[key] = dataclasses.replace(dot, loop_depth=deepest)
    return tuple(found.values())


def encodings(text: str) -> dict[str, str]:
    """The layouts that a module defines, by name."""
    rows = (row.partition(" = ") for row in text.split("\n") if row.startswith("#"))
    return {name: value for name, _, value in rows if not name.startswith("#loc")}


def _dot(
    item: IrOperation,
    asked: dict[tuple[Place, ...], str],
    encodings: dict[str, str],
    user: UserText,
) -> DotCode | None:
    types = shaped_types(item.types)
    if len(types) < 3 or any(len(kind.shape) < 2 for kind in types[:2]):
        return None
    left, right = types[0], types[1]
    result = types[2] if item.name.startswith("ttng.tc_gen5") else types[-1]
    single = "f32" in (left.element, right.element)
    return DotCode(
        line=user.line(item.chain),
        operand_types=(left.element_name, right.element_name),
        accumulator_type=result.element_name,
        path=_path(item, encodings.get(result.encoding, result.encoding)),
        tile=(left.shape[-2], right.shape[-1], left.shape[-1]),
        precision=asked.get(item.chain, _precision(item)) if single else None,
        loop_depth=item.loop_depth,
    )


def _path(item: IrOperation, encoding: str) -> MatrixPath:
    lowered = item.name.startswith("ttng.") or _MATRIX_ENCODING.search(encoding)
    return MatrixPath.TENSOR if lowered else MatrixPath.FMA


def _precision(item: IrOperation) -> str:
    match = _PRECISION.search(item.text)
    return match[1] if match else _PRECISE_BY_DEFAULT
