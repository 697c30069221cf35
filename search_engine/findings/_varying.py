"""Which numbers of a host function change from call to call, judged by their origin.

Rows, batch and sequence change; hidden sizes, heads and everything of a weight stay. Positions and
names tell them apart. Where neither is clear the answer is no, so that a finding stays rare.
"""

from __future__ import annotations

import ast
import re

from search_engine.findings._host_origin import HostOrigins, Origin, OriginKind

_CHANGING = frozenset({
    "batch", "bs", "bsz", "rows", "row", "tokens", "token", "seq", "seqlen", "seqlens", "length",
    "ctx", "context", "nnz", "numel", "elements", "samples", "requests", "reqs",
})  # fmt: skip
"""Words of names that grow and shrink with a request."""
_MODEL = frozenset({
    "hidden", "dim", "dims", "head", "heads", "hd", "channels", "features", "vocab", "cols",
    "columns", "experts", "topk", "kernel", "filter", "position", "positions",
    "embedding", "embeddings",
})  # fmt: skip
"""Words of names that a model fixes."""
_BOUNDED = frozenset({
    "block", "blocks", "tile", "chunk", "split", "splits", "group", "groups", "warps", "stages",
    "pow2", "padded", "pad", "max", "window", "page", "static",
})  # fmt: skip
"""Words of names that a configuration fixes, or that take few values."""
_SWITCH = frozenset({"is", "has", "use", "return", "enable", "with", "no"})
"""Words of names that are true or false."""
_CHANGING_LETTERS = frozenset("STL")
_FIXED_LETTERS = frozenset("DHCKVEGN")
_SCALARS = frozenset({"step", "global_step", "iteration", "seed", "rng_seed", "philox_seed"})
_PARAMETER = re.compile(
    r"(?:w\d*|w_.*|.*_w|b|bt|.*weights?.*|.*bias.*|gamma|beta|.*embed.*|.*emb|lut|codebook"
    r"|(?!page|block).*tables?"
    r"|.*cache.*|.*pool.*|.*buffer.*|.*buf|filter|kernel)",
    re.IGNORECASE,
)
"""Tensors whose form a model fixes: weights, tables, caches."""
_ATTENTION = re.compile(r"d?[qkvo]|query|key|value", re.IGNORECASE)
"""Operands of attention and their gradients."""
_TABLE = re.compile(r"(?:page|block)_?tables?", re.IGNORECASE)
"""As wide as the longest sequence of a batch."""


def varies(host: HostOrigins, origin: Origin) -> bool:
    """True if a number of this origin has a new value in many calls."""
    if origin.kind is OriginKind.SCALAR:
        return origin.source in _SCALARS or _named(origin.source) is True
    if _PARAMETER.fullmatch(origin.source):
        return False
    if origin.kind is OriginKind.STRIDE:
        return _stride_varies(host, origin)
    by_name = _named(origin.name)
    if by_name is not None:
        return by_name
    if origin.kind is OriginKind.COUNT or origin.dimension == 0:
        return True
    rank = origin.rank or 0
    middle = origin.dimension is not None and 0 < origin.dimension < rank - 1
    return middle and origin.name in _CHANGING_LETTERS


def fixed_by_name(name: str) -> bool:
    """True if a name says that its value belongs to a model."""
    return bool(_words(name) & _MODEL)


def _named(name: str | None) -> bool | None:
    """Whether a name speaks of something that changes; None if it says nothing."""
    if not name:
        return None
    words = _words(name)
    if words & (_MODEL | _BOUNDED) or name in _FIXED_LETTERS:
        return False
    return True if words & _CHANGING and not words & _SWITCH else None


def _words(name: str) -> set[str]:
    return set(re.split(r"_+", name.lower()))


def _stride_varies(host: HostOrigins, origin: Origin) -> bool:
    """A stride is the product of the sizes behind its dimension."""
    rank, dimension = origin.rank or 0, origin.dimension
    if dimension is None or dimension < 0:
        return False
    sizes = host.allocation(origin.source)
    if sizes is not None:
        return any(_expression_varies(host, size) for size in sizes[dimension + 1 :])
    if _TABLE.fullmatch(origin.source):
        return dimension == 0
    names = host.names.get(origin.source)
    if names is not None and len(names) == rank:
        inner = names[dimension + 1 : -1]
        return any(_named(name) or name in _CHANGING_LETTERS for name in inner)
    # Batch x heads x sequence x head size, in either order: the sequence lies behind the batch.
    return rank >= 4 and dimension == 0 and _ATTENTION.fullmatch(origin.source) is not None


def _expression_varies(host: HostOrigins, size: ast.expr) -> bool:
    return any(varies(host, origin) for origin in host.of(size))
