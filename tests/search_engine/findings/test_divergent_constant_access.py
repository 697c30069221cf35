"""Off by default; when asked for, it tells computed addresses apart from library tables."""

from code_subjects import HEADER, at, found, launch, line_of, subject

from search_engine.domain.code import MachineOperation as Op
from search_engine.findings.divergent_constant_access import DivergentConstantAccess

KERNEL = (
    HEADER
    + """@triton.jit
def kernel(x, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    w = tl.sin(v)
    tl.store(y + i, v + w)
"""
)
LOAD, SINE = line_of(KERNEL, "v = "), line_of(KERNEL, "tl.sin")


def test_computed_addresses() -> None:
    code = launch(at(LOAD, (Op.CONSTANT_LOAD, 4, 6), (Op.OTHER, 0, 20)))
    (item,) = found(DivergentConstantAccess(), subject(KERNEL, code))
    assert item.line == LOAD
    assert item.message == (
        "constant memory read at computed addresses: 6 loads, each up to 32 times"
    )
    assert not DivergentConstantAccess.shown


def test_the_table_of_sine_is_not() -> None:
    code = launch(at(SINE, (Op.CONSTANT_LOAD, 4, 6), (Op.OTHER, 0, 20)))
    assert found(DivergentConstantAccess(), subject(KERNEL, code)) == []
