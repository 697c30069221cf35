"""Long code and slow compilers are shown with the stage and, where it is certain, the cause."""

from code_subjects import HEADER, at, found, launch, line_of, subject

from search_engine.domain.code import MachineOperation as Op
from search_engine.findings.slow_compile import SlowCompile

KERNEL = (
    HEADER
    + """@triton.jit
def kernel(x, y, s, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i) / tl.load(s)
    w = tl.exp(v) / v
    tl.store(y, tl.sum(v + w))
"""
)
DIVISION, EXPONENT = line_of(KERNEL, "v = "), line_of(KERNEL, "w = ")


def test_seconds_of_the_slowest_stage_and_the_divisions_behind_them() -> None:
    code = launch(
        at(DIVISION, (Op.SPECIAL, 0, 2080), (Op.OTHER, 0, 4000)),
        instructions=7_000,
        seconds=(("ttgir", 0.5), ("llir", 1.0), ("cubin", 12.1)),
    )
    (item,) = found(SlowCompile(), subject(KERNEL, code))
    assert item.line == DIVISION
    assert item.message == (
        "compiles in 14 s, 12 s of it in ptxas: 7,000 instructions, 2,080 divisions here"
    )
    assert item.cost < 0.05


def test_long_code_is_shown_without_a_clock() -> None:
    code = launch(at(EXPONENT, (Op.SPECIAL, 0, 4000), (Op.OTHER, 0, 9000)), instructions=20_000)
    (item,) = found(SlowCompile(), subject(KERNEL, code))
    assert item.message == "20,000 instructions, more than the instruction cache holds"
    assert item.cost > 0.05


def test_no_single_line_is_to_blame() -> None:
    spread = [at(line, (Op.OTHER, 0, 1000)) for line in range(4)]
    (item,) = found(SlowCompile(), subject(KERNEL, launch(*spread, instructions=20_000)))
    assert item.line == line_of(KERNEL, "def kernel")


def test_ordinary_kernels_are_not_shown() -> None:
    code = launch(at(DIVISION, (Op.OTHER, 0, 900)), instructions=900, seconds=(("cubin", 0.4),))
    assert found(SlowCompile(), subject(KERNEL, code)) == []
