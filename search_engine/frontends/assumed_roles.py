"""Typical values by role: what a constant of this name and use usually is.

The tables follow what the kernels of public packages are launched with. They are guesses, and each
one that is used is said in the notes of the launch.
"""

from __future__ import annotations

import re

from search_engine.frontends.assumed_host import Symbol
from search_engine.frontends.assumed_uses import ConstantUse

_FLAG = re.compile(
    r"^(?:HAS|USE|IS|EVEN|ENABLE|DO|STORE|LOAD|APPLY|ADD|WITH|ALLOW|NEED|RETURN|COMPUTE|TRANS|"
    r"SKIP|FUSE|CAUSAL|REVERSE|INPLACE|MASK|DEBUG)(?:_|$)|_(?:FLAG|ENABLED|MASKED)$|^IS[A-Z]"
)
_FLOAT_SCALAR = re.compile(
    r"^(?:eps|epsilon|alpha|beta\d?|scale|scaling|sm_scale|qk_scale|softmax_scale|lr|momentum|"
    r"dropout_p|p_dropout|p|temperature|temp|weight_decay|wd|softcap|logit_softcap|negative_slope|"
    r"threshold|label_smoothing|lse_square_scale|gamma|theta|drop_p|rate|slope|"
    r"min_val|max_val|value|fill_value|clip\w*|limit|iou_threshold)$"
    r"|(?:_|^)(?:eps|epsilon|scale|alpha|softcap|smoothing|factor|coef|coeff|threshold|prob|"
    r"momentum|decay|ratio|temperature|slope|weight)$|^inv_|^reciprocal",
    re.IGNORECASE,
)
_STATISTIC = re.compile(
    r"(?:^|_)(?:lse|rstd|logsumexp|workspace)(?:_|$)|"
    r"(?:^|_)(?:lse|rstd|rms|mean|var|delta|m|l|logsumexp|max|sum|partial|acc|workspace|loss|"
    r"scales?|stats?|scratch|maxs?|norm|losses)(?:_ptrs?|_out)?$",
    re.IGNORECASE,
)
_OFFSETS = re.compile(
    r"seq_?start|seq_?pos|seq_?lens?|seqlens?|lengths?(?:_|$)|block_tables?|page_table|start_loc|indptr|cu_seq|"
    r"offsets?(?:_ptr)?$|num_\w+_ptr$|indices",
    re.IGNORECASE,
)
_WIDE_INDEX = re.compile(
    r"target|label|(?:^|_)ids?(?:_|$)|idx|index|indices|token|select|gather|scatter|topk|perm",
    re.IGNORECASE,
)
_STRIDE = re.compile(r"^(?:stride_?|s_|str_)\w*|\w*_stride(?:_\w+|\d)?$|^ld[abc]$", re.IGNORECASE)

_NAMED: tuple[tuple[re.Pattern[str], int], ...] = tuple(
    (re.compile(pattern), value)
    for pattern, value in (
        (r"^(?:NUM_|N_)?STAGES?$", 3),
        (r"^(?:NUM_)?WARPS$", 4),
        (r"^SPLITS?(?:_K|_N|_S)?$|^NUM_SPLITS$|^NUM_KV_SPLITS$", 1),
        (r"^GROUP_(?:SIZE_)?[MN]$|^GROUP$|^GROUP_SIZE$|^SWIZZLE$", 8),
        (r"^BC$|^BLOCK_(?:SIZE_)?H$|^BH$", 16),
        (r"^(?:BLOCK_(?:SIZE_)?K|BK|TILE_K|BS|BLOCK_S)$", 32),
        (r"^(?:HEAD_DIM\w*|HEAD_SIZE\w*|D_HEAD|HEADDIM|DIM|D|K|V|DK|DV|BLOCK_D\w*|BD|BV)$", 64),
        (r"^(?:N_HEADS|NUM_HEADS|H|HQ|HV|HK|NH|N_HEAD|NUM_\w*HEADS)$", 8),
        (r"^(?:N_SMS?|NUM_SMS?|NUM_PROGRAMS)$", 132),
        (r"NBITS$|^(?:W_|NUM_)?BITS$|BIT_?WIDTH$", 4),
        (r"PER_KV|^(?:G|N_GROUPS|NUM_GROUPS|QUEUE\w*|TOP_?K|PACK\w*)$", 4),
        (r"^ELEMENTS_PER_SAMPLE$", 8),
        (r"UNPACK_MASK$", 15),
        (r"^(?:BT|CHUNK(?:_SIZE)?)$", 64),
    )
)
_ALONE = 1024
"""Length of the only block of a one-dimensional kernel."""
_AMONG_OTHERS = 64
_UNROLLED = 4
_SQUARE = 16
"""Edge of a block that is as long as it is wide and has no name that says more."""
_DISABLED = ("", "none", "None", "NONE")


def constant_by_role(name: str, use: ConstantUse, blocks: int) -> object:
    """A value for a constant that nothing in the text gives.

    ``blocks`` counts the constants of the kernel that are lengths of blocks. Returns a Python
    value or a ``Symbol``.
    """
    compared = [item for item in use.compared if item is not None]
    texts = [item for item in compared if isinstance(item, str)]
    if use.dtype or _plain(name).endswith("DTYPE"):
        return Symbol("tl.float32")
    if texts:
        return next((t for t in texts if t in _DISABLED), "" if "ACT" in name.upper() else texts[0])
    if None in use.compared and not use.shape and not use.arithmetic:
        return None
    if is_flag(name, use) or any(isinstance(item, bool) for item in compared):
        return False
    number = _by_name(name)
    if use.shape or use.unrolled:
        return _length(name, use, blocks) if number is None else number
    if number is not None:
        return number
    whole = [item for item in compared if isinstance(item, int)]
    return whole[0] if whole else _other(name, use, blocks)


def _length(name: str, use: ConstantUse, blocks: int) -> int:
    """A power of two for the length of a block's axis, or of a loop that is unrolled."""
    named = re.search("BLOCK|CHUNK|TILE", name.upper()) is not None
    if use.unrolled:
        return _UNROLLED
    if use.square:
        return _AMONG_OTHERS if named else _SQUARE
    if use.factor:
        return _SQUARE if named else _UNROLLED
    return _ALONE if blocks == 1 else _AMONG_OTHERS


def is_flag(name: str, use: ConstantUse) -> bool:
    """True for a constant that turns something on or off."""
    if use.shape or use.unrolled:
        return False
    return (use.flag and not use.arithmetic) or _FLAG.search(_plain(name)) is not None


def is_block(name: str) -> bool:
    """True for ``BLOCK_M``, ``TILE_K`` and the like."""
    return re.search(r"BLOCK|TILE", name.upper()) is not None


def is_float_scalar(name: str) -> bool:
    """True for ``eps``, ``sm_scale``, ``alpha`` and the like."""
    return _FLOAT_SCALAR.search(name) is not None


def is_stride(name: str) -> bool:
    """True for ``stride_am``, ``x_row_stride`` and the like."""
    return _STRIDE.search(name) is not None


def holds_statistics(name: str) -> bool:
    """True for buffers that are kept in fp32: log-sum-exp, reciprocal deviations, partial sums."""
    return _STATISTIC.search(name) is not None


def holds_offsets(name: str) -> bool:
    """True for lengths, offsets and tables, which steer a kernel and are whole numbers."""
    return _OFFSETS.search(name) is not None


def holds_wide_indices(name: str) -> bool:
    """True for index tensors that PyTorch makes as int64; lengths and offsets are often int32."""
    return _WIDE_INDEX.search(name) is not None


def _by_name(name: str) -> int | None:
    upper = _plain(name)
    return next((value for pattern, value in _NAMED if pattern.search(upper)), None)


def _plain(name: str) -> str:
    """The name without a prefix that marks constants."""
    return re.sub(r"^(?:CXPR|CONST|CE|META|CONSTEXPR)_", "", name.upper())


def _other(name: str, use: ConstantUse, blocks: int) -> object:
    upper = _plain(name)
    if is_float_scalar(name):
        return 1e-6 if "EPS" in upper else 1.0
    if is_stride(name):
        return _ALONE
    if "BLOCK" in upper or "TILE" in upper or "SIZE" in upper:
        return _ALONE if blocks <= 1 else _AMONG_OTHERS
    if "MODE" in upper or upper.endswith(("_ID", "_TYPE")):
        return 0
    if use.arithmetic:
        return _AMONG_OTHERS
    return False if upper == name and use.flag else _AMONG_OTHERS
