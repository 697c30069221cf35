"""Divisions per element are shown with their number and divisor; those per program are not."""

from code_subjects import HEADER, at, found, launch, line_of, subject

from search_engine.domain.code import LaunchCode
from search_engine.domain.code import MachineOperation as Op
from search_engine.findings.integer_division import IntegerDivision

KERNEL = (
    HEADER
    + """@triton.jit
def kernel(x, y, width, BLOCK: tl.constexpr):
    tile = tl.program_id(0) // width
    at = tile * BLOCK + tl.arange(0, BLOCK)
    row = at // width
    v = tl.load(x + row)
    tl.store(y + at, v)
"""
)
ROW, TILE, LOAD = (line_of(KERNEL, part) for part in ("row = ", "tile = ", "v = "))


def code(line: int, count: int, *, store_bytes: int = 8) -> LaunchCode:
    lines = (
        at(line, (Op.INTEGER_DIVISION, 0, count), (Op.OTHER, 0, 20 * count)),
        at(LOAD + 1, (Op.GLOBAL_STORE, 4, store_bytes // 4)),
    )
    return launch(*lines)


def test_a_division_for_each_element() -> None:
    (item,) = found(IntegerDivision(), subject(KERNEL, code(ROW, 8)))
    assert item.line == ROW
    assert item.message == "8 integer divisions by `width` per thread"


def test_one_division_a_program_is_fine() -> None:
    assert found(IntegerDivision(), subject(KERNEL, code(TILE, 1))) == []


def test_a_line_without_a_division_in_the_text_is_not_blamed() -> None:
    assert found(IntegerDivision(), subject(KERNEL, code(LOAD, 8))) == []


def test_divisions_hide_behind_memory() -> None:
    cheap = found(IntegerDivision(), subject(KERNEL, code(ROW, 8, store_bytes=8)))[0].cost
    busy = found(IntegerDivision(), subject(KERNEL, code(ROW, 8, store_bytes=1024)))
    assert all(item.cost < cheap / 2 for item in busy)
