"""Repairs of Triton's CPU interpreter for libraries newer than it was tested with."""

from __future__ import annotations

from typing import Any

_repaired = False


def repair() -> None:
    """Let ``range(0, n, BLOCK)`` take interpreted scalars under NumPy 2.4 and later.

    The interpreter holds a scalar as an array of one element and calls ``int`` on the array, which
    NumPy refuses from 2.4 on. Does nothing where the private hook is not there.
    """
    global _repaired
    from triton.runtime import interpreter

    patch_tensor: Any = getattr(interpreter, "_patch_lang_tensor", None)
    if _repaired or patch_tensor is None:
        return

    def patch(tensor: Any, *rest: Any) -> Any:
        result = patch_tensor(tensor, *rest)
        tensor.__index__ = lambda self: int(self.handle.data.item())
        return result

    interpreter._patch_lang_tensor = patch  # pyright: ignore[reportAttributeAccessIssue]
    _repaired = True
