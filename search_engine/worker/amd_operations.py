"""What an AMD instruction does, and how many bytes a thread it moves."""

from __future__ import annotations

import re

from search_engine.domain.code import MachineOperation as Op

_PATTERNS = (
    (Op.ATOMIC_CAS, r"\w+_atomic_cmpswap\w*|ds_cmpst\w*"),
    (Op.ATOMIC, r"(?:global|buffer|flat)_atomic_\w+"),
    (Op.ATOMIC, r"ds_(?:add|sub|inc|dec|min|max|and|or|xor|wrxchg|pk_add)\w*"),
    (Op.ASYNC_COPY, r"(?:global|buffer)_load_lds_\w+|(?:tensor_load|global_load_async)_to_lds\w*"),
    (Op.GLOBAL_LOAD, r"(?:global|buffer|flat)_load_\w+"),
    (Op.GLOBAL_STORE, r"(?:global|buffer|flat)_store_\w+"),
    (Op.LOCAL_LOAD, r"scratch_load_\w+"),
    (Op.LOCAL_STORE, r"scratch_store_\w+"),
    (Op.SHUFFLE, r"ds_(?:b?permute|swizzle)\w*|v_\w+_dpp\d*|v_permlane\w*"),
    (Op.SHARED_LOAD, r"ds_(?:read|load)\w*"),
    (Op.SHARED_STORE, r"ds_(?:write|store)\w*"),
    (Op.MATRIX, r"v_(?:mfma|wmma|smfmac|swmmac)_\w+"),
    (Op.CONVERSION, r"v_cvt_\w+"),
    (Op.SPECIAL, r"v_(?:exp|log|rcp|rcp_iflag|rsq|sqrt|sin|cos|tanh)_f\d+\w*"),
    (Op.FP64, r"v_\w+_f64\w*"),
    (Op.FP32, r"v_(?!cmp)\w*_f32\w*|v_(?:fmac|fmamk|fmaak|mac)_f32\w*"),
    (Op.BARRIER, r"s_barrier\w*"),
    (Op.BRANCH, r"s_branch|s_cbranch_\w+|s_setpc\w*|s_swappc\w*"),
)  # fmt: skip
"""The first that matches the whole name holds."""

_CLASSES = tuple((kind, re.compile(pattern)) for kind, pattern in _PATTERNS)

MEMORY = (
    Op.GLOBAL_LOAD, Op.GLOBAL_STORE, Op.ASYNC_COPY, Op.SHARED_LOAD, Op.SHARED_STORE,
    Op.SPILL_LOAD, Op.SPILL_STORE, Op.LOCAL_LOAD, Op.LOCAL_STORE, Op.ATOMIC, Op.ATOMIC_CAS,
)  # fmt: skip
"""Classes whose width is counted."""

_SPILLED = {"Folded Spill": Op.SPILL_STORE, "Folded Reload": Op.SPILL_LOAD}
_WORDS = re.compile(r"dwordx(\d+)")
_BITS = re.compile(r"[bufi](8|16|32|64|96|128)(?:_|$)")


def operation(name: str, rest: str) -> Op:
    """The class of an instruction; ``rest`` is what follows its name, comment included."""
    for mark, kind in _SPILLED.items():
        if mark in rest:
            return kind
    if name.startswith("buffer_load") and rest.partition(";")[0].rstrip().endswith(" lds"):
        return Op.ASYNC_COPY
    return next((kind for kind, pattern in _CLASSES if pattern.fullmatch(name)), Op.OTHER)


def width_bytes(name: str) -> int:
    """Bytes a thread of a memory instruction."""
    if words := _WORDS.search(name):
        return 4 * int(words[1])
    if "dword" in name or "_pk_" in name:
        return 4
    if name.endswith("_x2"):
        return 8
    if bits := _BITS.search(name):
        size = int(bits[1]) // 8
        return 2 * size if re.match(r"ds_(?:read|write|load|store)_?2", name) else size
    if "byte" in name:
        return 1
    return 2 if "short" in name else 4
