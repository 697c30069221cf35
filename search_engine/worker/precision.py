"""What the compiler's own code says about narrow arithmetic in a version's kernels."""

from __future__ import annotations

import re
import types
from typing import Any

from search_engine.worker.attempt import Attempt

_TF32 = re.compile(
    r"(?:tt\.dot|warp_group_dot|tc_gen5_mma|tcgen5)[^\n]*inputPrecision = (?:0|tf32)"
)
_FLOAT32_DOT = re.compile(r"(?:tt\.dot|warp_group_dot)[^\n]*xf32[^\n]*->")
_NARROWING = re.compile(
    r"(?:arith\.truncf|tt\.fp_to_fp)[^\n]*-?\s*(?:to|->) (?:tensor<[^\n]*x)?(\w+)"
)


def narrowings(module: types.ModuleType) -> frozenset[str]:
    """Kinds of narrow arithmetic in all kernels of a module that were compiled in this process.

    ``tf32`` for matrix products that round float32 operands, and the name of each float type that
    values are rounded to. Empty where nothing was compiled (interpreter, plain torch).
    """
    found: set[str] = set()
    for text in _intermediate_texts(module):
        if _TF32.search(text) and _FLOAT32_DOT.search(text):
            found.add("tf32")
        found.update(name for name in _NARROWING.findall(text) if name[0] in "fb")
    return frozenset(found)


def _intermediate_texts(module: types.ModuleType) -> list[str]:
    texts: list[str] = []
    for value in list(vars(module).values()):
        # The caches of compiled kernels are private to Triton and may move between versions.
        with Attempt():
            texts.extend(str(kernel.asm["ttgir"]) for kernel in _compiled(value))
    return texts


def _compiled(value: Any) -> list[Any]:
    function = value
    while not hasattr(function, "device_caches") and hasattr(function, "fn"):
        function = function.fn
    caches = getattr(function, "device_caches", {})
    return [kernel for entry in caches.values() for kernel in entry[0].values()]
