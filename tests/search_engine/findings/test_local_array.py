"""Local memory that is no spill is shown, but not the tables of library functions."""

from code_subjects import HEADER, at, found, launch, line_of, subject

from search_engine.domain.code import MachineOperation as Op
from search_engine.findings.local_array import LocalArray

KERNEL = (
    HEADER
    + """@triton.jit
def kernel(x, y, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    v = tl.load(x + at)
    w = v * 2
    tl.store(y + at, tl.math.cos(v) + w)
"""
)
MUL, COSINE = line_of(KERNEL, "w = v"), line_of(KERNEL, "cos(v)")
LOCAL = (Op.LOCAL_STORE, 4, 8), (Op.LOCAL_LOAD, 4, 8), (Op.OTHER, 0, 20)


def test_an_array_is_shown_with_its_accesses() -> None:
    (item,) = found(LocalArray(), subject(KERNEL, launch(at(MUL, *LOCAL))))
    assert item.line == MUL
    assert "16 accesses, 64 B per thread" in item.message


def test_the_slow_path_of_cosine_and_spills_are_not() -> None:
    assert found(LocalArray(), subject(KERNEL, launch(at(COSINE, *LOCAL)))) == []
    spills = launch(at(MUL, (Op.SPILL_STORE, 4, 8), (Op.SPILL_LOAD, 4, 8)))
    assert found(LocalArray(), subject(KERNEL, spills)) == []
