"""Doubles in a float kernel, weighed by the target's rate for them."""

from code_subjects import H100, HEADER, L40S, at, found, launch, line_of, pointer, subject

from search_engine.domain.code import LaunchCode
from search_engine.domain.code import MachineOperation as Op
from search_engine.findings.fp64_in_fp32 import Fp64InFp32

KERNEL = (
    HEADER
    + """@triton.jit
def kernel(x, y, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i).to(tl.float64)
    w = tl.cos(v)
    tl.store(y + i, v * v + w)
"""
)
STORE, COSINE = line_of(KERNEL, "tl.store"), line_of(KERNEL, "tl.cos")


def code(line: int, dtype: str = "*fp32") -> LaunchCode:
    lines = (
        at(STORE, (Op.GLOBAL_STORE, 4, 8)),
        at(line, (Op.FP64, 0, 152)),
        at(line, (Op.OTHER, 0, 20)),
    )
    return launch(*lines, arguments=(pointer("x", dtype), pointer("y", dtype)))


def test_doubles_are_counted_and_cost_more_where_they_are_slower() -> None:
    (on_l40s,) = found(Fp64InFp32(), subject(KERNEL, code(STORE), target=L40S))
    assert on_l40s.line == STORE
    assert on_l40s.message == (
        "152 double instructions in a float kernel, at 1/64 of the fp32 rate on sm_89"
    )
    on_h100 = found(Fp64InFp32(), subject(KERNEL, code(STORE), target=H100))
    assert on_l40s.cost > 0.5
    assert all(item.cost < 0.6 * on_l40s.cost for item in on_h100)


def test_a_kernel_of_doubles_and_the_slow_path_of_cosine_are_left_alone() -> None:
    assert found(Fp64InFp32(), subject(KERNEL, code(STORE, "*fp64"), target=L40S)) == []
    assert found(Fp64InFp32(), subject(KERNEL, code(COSINE), target=L40S)) == []
