"""Narrow accesses are shown where wide ones are possible, with both numbers."""

from code_subjects import HEADER, at, constant, found, integer, launch, line_of, pointer, subject

from search_engine.domain.access import LaunchTrace, LineAccess
from search_engine.domain.code import LaunchCode
from search_engine.domain.code import MachineOperation as Op
from search_engine.domain.kernel import OperationKind
from search_engine.findings.narrow_access import NarrowAccess

KERNEL = (
    HEADER
    + """@triton.jit
def kernel(x_ptr, order_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at)
    moved = tl.associative_scan(at, 0, _first)
    z = tl.load(x_ptr + moved)
    tl.store(y_ptr + at, x + z)
"""
)
LOAD, MOVED = line_of(KERNEL, "x = "), line_of(KERNEL, "z = ")


def code(line: int, width: int, count: int, *, aligned: int = 1024) -> LaunchCode:
    arguments = (
        pointer("x_ptr"),
        pointer("order_ptr"),
        pointer("y_ptr"),
        integer("n", aligned),
        constant("BLOCK", 1024),
    )
    return launch(at(line, (Op.GLOBAL_LOAD, width, count)), arguments=arguments)


def traced(line: int, *, sectors: int, stride: int = 1) -> LaunchTrace:
    """10 executions of 1024 lanes that need 128 sectors each."""
    access = LineAccess(
        line=line,
        kind=OperationKind.LOAD,
        argument="x_ptr",
        element_bytes=4,
        executions=10,
        empty_executions=0,
        lanes=10240,
        active_lanes=10240,
        bytes=40960,
        distinct_bytes=40960,
        sectors=sectors,
        least_sectors=1280,
        stride_elements=stride,
        tensor_bytes=1 << 28,
        most_same_address=0,
    )
    return LaunchTrace("kernel", None, 1, (4096, 1, 1), 10, (access,), ())


def test_narrow_although_the_compilers_rules_allow_more() -> None:
    (item,) = found(NarrowAccess(), subject(KERNEL, code(LOAD, 4, 8)))
    assert item.line == LOAD
    assert item.message == "8 loads of 4 B where 2 of 16 B would do"


def test_two_bytes_cost_more_than_eight() -> None:
    costs = [
        found(NarrowAccess(), subject(KERNEL, code(LOAD, width, 32 // width)))[0].cost
        for width in (4, 8)
    ]
    assert costs[0] > costs[1]


def test_wide_is_fine() -> None:
    assert found(NarrowAccess(), subject(KERNEL, code(LOAD, 16, 2))) == []


def test_traced_neighbours_that_the_compiler_cannot_prove() -> None:
    launch_code = code(MOVED, 4, 8)
    packed = subject(KERNEL, launch_code, traces=(traced(MOVED, sectors=1280),))
    (item,) = found(NarrowAccess(), packed)
    assert item.line == MOVED
    assert item.message == "8 loads of 4 B where 2 of 16 B would do"


def test_strided_or_untraced_lanes_are_no_neighbours() -> None:
    launch_code = code(MOVED, 4, 8)
    assert found(NarrowAccess(), subject(KERNEL, launch_code)) == []
    apart = traced(MOVED, sectors=10240, stride=9)
    assert found(NarrowAccess(), subject(KERNEL, launch_code, traces=(apart,))) == []
