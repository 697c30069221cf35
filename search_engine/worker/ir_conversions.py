"""Tensors that change their layout inside a kernel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from search_engine.domain.code import LayoutConversion, LineCode, MachineOperation
from search_engine.worker.code_places import UserText
from search_engine.worker.ir_text import IrOperation
from search_engine.worker.ir_types import ShapedType, shaped_types

_DOT_OPERAND = "dot_op"
"""The layout of a dot's operand: bringing a tensor there belongs to the dot."""


def conversions(
    lowered: Sequence[IrOperation], code: Iterable[LineCode], user: UserText
) -> tuple[LayoutConversion, ...]:
    """Conversions that go through shared memory, in the order of the code.

    Some need only a move between registers or a shuffle: one is left out if the machine code of
    its line, where there is any, writes no shared memory.
    """
    stores: Counter[int | None] = Counter()
    for part in code:
        stores[part.line] += part.count(MachineOperation.SHARED_STORE)
    found = [_conversion(item, lowered, user) for item in lowered]
    return tuple(
        item
        for item in found
        if item is not None and (item.line not in stores or stores[item.line])
    )


def _conversion(
    item: IrOperation, lowered: Sequence[IrOperation], user: UserText
) -> LayoutConversion | None:
    through_buffer = item.name == "ttg.local_load" and _is_stored_for_it(item, lowered)
    if item.name != "ttg.convert_layout" and not through_buffer:
        return None
    target = _result(item)
    if target is None or _DOT_OPERAND in target.encoding:
        return None
    return LayoutConversion(user.line(item.chain), target.bytes, item.loop_depth)


def _result(item: IrOperation) -> ShapedType | None:
    types = shaped_types(item.types)
    return types[-1] if types else None


def _is_stored_for_it(item: IrOperation, lowered: Sequence[IrOperation]) -> bool:
    """True if the buffer holds a tensor of the kernel's own, put there only to be read back."""
    buffer = item.operands[0] if item.operands else None
    made = next((other for other in lowered if buffer in other.results), None)
    return made is not None and made.name == "ttg.local_alloc" and bool(made.operands)
