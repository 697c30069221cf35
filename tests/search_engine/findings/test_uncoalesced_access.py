"""Strided lanes are shown with what they use of each sector; caches and fields are allowed for."""

from dataclasses import replace

from code_subjects import HEADER, at, constant, found, integer, launch, line_of, pointer, subject

from search_engine.domain.access import LaunchTrace, LineAccess
from search_engine.domain.code import LaunchCode
from search_engine.domain.code import MachineOperation as Op
from search_engine.domain.kernel import OperationKind
from search_engine.findings.uncoalesced_access import UncoalescedAccess

COLUMNS = (
    HEADER
    + """@triton.jit
def kernel(x_ptr, out_ptr, stride, n, BLOCK: tl.constexpr):
    col = tl.program_id(0)
    total = 0.0
    for start in range(0, n, BLOCK):
        rows = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + rows * stride + col, mask=rows < n, other=0.0)
        total += tl.sum(x, axis=0)
    tl.store(out_ptr + col, total)


# kernel-lsp: workload x=f32[16384,8192]
# kernel-lsp: reference x.sum(dim=0)
def column_sum(x):
    n, m = x.shape
    out = torch.empty(m, device=x.device)
    kernel[(m,)](x, out, x.stride(0), n, BLOCK=1024)
    return out
"""
)
LOAD = line_of(COLUMNS, "x = tl.load")


def access(line: int, *, sectors: int, stride: int | None, size: int = 1 << 29) -> LineAccess:
    """Loads of 16,384 floats of 4 bytes, which need 2,048 sectors."""
    return LineAccess(
        line=line,
        kind=OperationKind.LOAD,
        argument="x_ptr",
        element_bytes=4,
        executions=16,
        empty_executions=0,
        lanes=16384,
        active_lanes=16384,
        bytes=65536,
        distinct_bytes=65536,
        sectors=sectors,
        least_sectors=2048,
        stride_elements=stride,
        tensor_bytes=size,
        most_same_address=0,
    )


def traced(*accesses: LineAccess) -> LaunchTrace:
    return LaunchTrace("kernel", None, 1, (8192, 1, 1), 1, accesses, ())


def test_a_stride_is_shown_with_bytes_used_and_the_rule_that_answers_it() -> None:
    trace = traced(access(LOAD, sectors=16384, stride=8192))
    (item,) = found(UncoalescedAccess(), subject(COLUMNS, traces=(trace,)))
    assert item.line == LOAD
    assert item.message == (
        "uses 4 of every 32 B fetched from `x_ptr`: lanes are 8,192 elements apart"
    )
    assert item.rule == "tile-strided-access"
    assert item.cost > 0.5


def test_a_store_fills_sectors() -> None:
    store = replace(access(LOAD, sectors=16384, stride=8192), kind=OperationKind.STORE)
    (item,) = found(UncoalescedAccess(), subject(COLUMNS, traces=(traced(store),)))
    assert item.message.startswith("fills 4 of every 32 B written to `x_ptr`")


def test_gathered_lanes_have_no_stride() -> None:
    trace = traced(access(LOAD, sectors=16384, stride=3))
    (item,) = found(UncoalescedAccess(), subject(COLUMNS, traces=(trace,)))
    assert item.message.endswith("lanes touch scattered addresses")


def test_packed_lanes_scalars_and_small_tables_are_fine() -> None:
    for harmless in (
        access(LOAD, sectors=2048, stride=1),
        access(LOAD, sectors=2500, stride=1),
        access(LOAD, sectors=16384, stride=None),
        access(LOAD, sectors=16384, stride=8192, size=64 * 1024),
    ):
        assert found(UncoalescedAccess(), subject(COLUMNS, traces=(traced(harmless),))) == []


def test_fields_that_lines_read_together_fill_their_sectors() -> None:
    fields = [access(line, sectors=8192, stride=4) for line in range(LOAD - 1, LOAD + 3)]
    assert found(UncoalescedAccess(), subject(COLUMNS, traces=(traced(*fields),))) == []


def test_a_line_that_moves_little_is_not_shown() -> None:
    big = replace(access(LOAD - 1, sectors=2048 * 100, stride=1), bytes=65536 * 100)
    big = replace(big, least_sectors=2048 * 100)
    trace = traced(access(LOAD, sectors=16384, stride=8192), big)
    assert found(UncoalescedAccess(), subject(COLUMNS, traces=(trace,))) == []


FIELDS = (
    HEADER
    + """@triton.jit
def kernel(x_ptr, y_ptr, n, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at * WIDTH)
    tl.store(y_ptr + at, x)
"""
)


def fields(width: int) -> LaunchCode:
    arguments = (
        pointer("x_ptr"),
        pointer("y_ptr"),
        integer("n", None),
        constant("WIDTH", width),
        constant("BLOCK", 1024),
    )
    lines = (
        at(line_of(FIELDS, "x = "), (Op.GLOBAL_LOAD, 4, 8)),
        at(line_of(FIELDS, "tl.store"), (Op.GLOBAL_STORE, 16, 2)),
    )
    return launch(*lines, arguments=arguments, assumed=True)


def test_a_constant_stride_needs_no_launch() -> None:
    (item,) = found(UncoalescedAccess(), subject(FIELDS, fields(64)))
    assert item.line == line_of(FIELDS, "x = ")
    assert item.message.startswith("uses 4 of every 32 B fetched from `x_ptr`: lanes are 64 ")
    assert item.assumed


SQUARE = (
    HEADER
    + """@triton.jit
def kernel(x_ptr, y_ptr, n, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i[:, None] * BLOCK + i[None, :])
    tl.store(y_ptr + i[None, :] * BLOCK + i[:, None], x)
"""
)


def test_one_axis_of_neighbours_is_enough() -> None:
    """Both axes count the same lanes, and one of them steps by one."""
    code = fields(64)
    assert found(UncoalescedAccess(), subject(SQUARE, code)) == []


def test_an_assumed_stride_that_is_no_constant_says_nothing() -> None:
    unknown = launch(
        at(LOAD, (Op.GLOBAL_LOAD, 4, 8), depth=1),
        arguments=(
            pointer("x_ptr"),
            pointer("out_ptr"),
            integer("stride", None),
            integer("n", None),
            constant("BLOCK", 1024),
        ),
        assumed=True,
    )
    assert found(UncoalescedAccess(), subject(COLUMNS, unknown)) == []
    assert found(UncoalescedAccess(), subject(FIELDS, fields(2))) == []
