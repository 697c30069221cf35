"""Spills are shown where they run most, and not where they cost nothing."""

from code_subjects import HEADER, at, found, launch, line_of, subject

from search_engine.domain.code import MachineOperation as Op
from search_engine.findings.register_spill import RegisterSpill

KERNEL = (
    HEADER
    + """@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        total += tl.load(x + row * n + start + tl.arange(0, BLOCK))
    tl.store(y + row, tl.sum(tl.sin(total)))
"""
)
LOAD, STORE = line_of(KERNEL, "total +="), line_of(KERNEL, "tl.store")
WORK = (Op.OTHER, 0, 60), (Op.GLOBAL_LOAD, 16, 4)
SPILL = (Op.SPILL_LOAD, 4, 12), (Op.SPILL_STORE, 4, 12)


def test_a_spill_in_a_loop_is_shown_there_with_its_bytes_and_registers() -> None:
    code = launch(at(LOAD, *WORK, *SPILL, depth=1), registers=255, warps=8)
    (item,) = found(RegisterSpill(), subject(KERNEL, code))
    assert item.line == LOAD
    assert item.message == "96 B spilled per thread in the loop (255 registers, 8 warps)"
    assert item.severity.value == "hint"


def test_the_line_that_runs_most_spills_is_named() -> None:
    code = launch(
        at(LOAD, *WORK, *SPILL, depth=1), at(STORE - 3, (Op.SPILL_STORE, 4, 40)), registers=255
    )
    (item,) = found(RegisterSpill(), subject(KERNEL, code))
    assert item.line == LOAD
    assert item.message.startswith("256 B spilled per thread (255 registers")
    assert item.message.endswith("most of it in the loop")


def test_a_loop_weighs_more_than_straight_code() -> None:
    inside = launch(at(LOAD, *WORK, *SPILL, depth=1))
    outside = launch(at(LOAD, *WORK, depth=1), at(LOAD - 2, *SPILL))
    cost = found(RegisterSpill(), subject(KERNEL, inside))[0].cost
    assert all(item.cost < cost / 3 for item in found(RegisterSpill(), subject(KERNEL, outside)))


def test_a_few_words_outside_a_long_loop_are_not_shown() -> None:
    code = launch(at(LOAD, *WORK, depth=1), at(LOAD - 2, (Op.SPILL_STORE, 4, 1)))
    assert found(RegisterSpill(), subject(KERNEL, code)) == []


def test_no_spill_no_finding_and_the_slow_path_of_sine_is_none() -> None:
    clean = launch(at(LOAD, *WORK, depth=1))
    sine = launch(at(LOAD, *WORK, depth=1), at(STORE, *SPILL, *SPILL, *SPILL, (Op.OTHER, 0, 10)))
    assert found(RegisterSpill(), subject(KERNEL, clean)) == []
    assert found(RegisterSpill(), subject(KERNEL, sine)) == []
