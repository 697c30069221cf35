"""Rows and blocks of rows of an output: where the scale and the yardstick are local."""

from __future__ import annotations

import math
from typing import Any

_SHORTEST_ROW = 32
_BLOCK = 1024
_LONGEST_BLOCK = 8192
"""Selection works on one block at a time on a GPU; longer rows are cut into blocks of this."""
_QUANTILE = 0.999


def row_length(shape: tuple[int, ...]) -> int:
    """Elements of a row: the last dimension, joined with those before it while it is short."""
    length = 1
    for size in reversed(shape):
        length *= size
        if length >= _SHORTEST_ROW:
            break
    return max(length, 1)


def block_quantile(errors: Any) -> Any:
    """For each element of ``errors`` [rows, columns], the 0.999 quantile of its block.

    A block holds whole rows and at least 1024 elements, or 8192 columns of a longer row. The last
    block of each kind overlaps the one before it instead of being short.
    """
    rows, columns = errors.shape
    if columns >= _BLOCK:
        return _along(errors, min(columns, _LONGEST_BLOCK))
    together = min(math.ceil(_BLOCK / columns), rows)
    whole = rows // together * together
    blocks = errors[:whole].reshape(-1, together * columns)
    parts = [_kth(blocks).repeat_interleave(together, 0)]
    if whole < rows:
        last = _kth(errors[rows - together :].reshape(1, -1))
        parts.append(last.expand(rows - whole, 1))
    return _joined(parts, 0).expand(rows, columns)


def _along(errors: Any, length: int) -> Any:
    rows, columns = errors.shape
    whole = columns // length * length
    blocks = errors[:, :whole].reshape(-1, length)
    quantiles = _kth(blocks).reshape(rows, -1).repeat_interleave(length, 1)
    if whole == columns:
        return quantiles
    last = _kth(errors[:, columns - length :].contiguous())
    return _joined([quantiles, last.expand(rows, columns - whole)], 1)


def _kth(blocks: Any) -> Any:
    k = math.ceil(_QUANTILE * blocks.shape[1])
    return blocks.kthvalue(k, dim=1, keepdim=True).values


def _joined(parts: list[Any], dimension: int) -> Any:
    import torch

    return parts[0] if len(parts) == 1 else torch.cat(parts, dimension)
