"""Make the interpreter's own bookkeeping faster while a trace runs.

Most of its time goes into describing types: every operation makes new shape objects, whose parts
name themselves. Here equal shapes are described once. Each replacement is compared with the
original on first use, and left out where another Triton version differs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeAlias

Replacement: TypeAlias = tuple[Any, str, Any]
"""Owner, name of the attribute, what stands there during the trace."""


def replacements() -> list[Replacement]:
    """Replacements that behave as the originals do in this Triton."""
    import triton.language.core as triton_core
    from triton.runtime import interpreter

    core: Any = triton_core
    made = [(interpreter, "_get_np_dtype", _numpy_types(interpreter._get_np_dtype))]
    block, tensor = _block_type(core), _tensor(core)
    if _same(core, block, tensor):
        made += [(core.block_type, "__init__", block), (core.tensor, "__init__", tensor)]
    return made


@functools.cache
def _same(core: Any, block: Any, tensor: Any) -> bool:
    """True if objects made both ways have equal attributes."""
    for shape in ([4], [core.constexpr(2), 8]):
        ours, theirs = object.__new__(core.block_type), core.block_type(core.float32, shape)
        block(ours, core.float32, shape)
        if not _equal(ours, theirs):
            return False
        for kind in (theirs, core.int32):
            mine, original = object.__new__(core.tensor), core.tensor(None, kind)
            tensor(mine, None, kind)
            if not _equal(mine, original):
                return False
    return True


def _equal(one: Any, other: Any) -> bool:
    mine, theirs = vars(one), vars(other)
    if mine.keys() != theirs.keys():
        return False
    return all(repr(mine[name]) == repr(theirs[name]) for name in mine)


@functools.cache
def _block_type(core: Any) -> Callable[..., None]:
    original = core.block_type.__init__
    shapes: dict[tuple[int, ...], tuple[Any, int]] = {}
    names: dict[tuple[tuple[int, ...], str], str] = {}
    constexpr = core.constexpr

    def describe(self: Any, element_ty: Any, shape: Any) -> None:
        key = tuple([s.value if type(s) is constexpr else s for s in shape])
        name = names.get((key, element_ty.name))
        if name is None:
            original(self, element_ty, shape)
            shapes.setdefault(key, (self.shape, self.numel))
            names[key, element_ty.name] = self.name
            return
        self.element_ty, self.name = element_ty, name
        self.shape, self.numel = shapes[key]

    return describe


@functools.cache
def _tensor(core: Any) -> Callable[..., None]:
    original = core.tensor.__init__
    shapes: dict[int, tuple[Any, Any, Any]] = {}
    scalar: list[Any] = []

    def describe(self: Any, handle: Any, type: Any) -> None:
        block = type.is_block()
        known = (shapes.get(id(type.shape)) if block else scalar) or None
        if known is None:
            original(self, handle, type)
            found = (self.shape, self.numel, type.shape if block else None)
            if block:
                shapes[id(type.shape)] = found  # holds the key, so that its id is not given again
            else:
                scalar.extend(found)
            return
        self.handle, self.type = handle, type
        self.shape, self.numel, _ = known
        self.dtype = type.element_ty if block else type.scalar

    return describe


@functools.cache
def _numpy_types(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
    by_name: dict[str, Any] = {}

    def find(kind: Any) -> Any:
        found = by_name.get(kind.name)
        if found is None:
            found = by_name[kind.name] = original(kind)
        return found

    return find
