"""Low occupancy is shown where it can matter, with what binds and what would lift it."""

from code_subjects import HEADER, MI300, at, found, launch, line_of, subject

from search_engine.domain.code import DotCode, MatrixPath
from search_engine.domain.code import MachineOperation as Op
from search_engine.findings.low_occupancy import LowOccupancy

KERNEL = (
    HEADER
    + """@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        total += tl.load(x + row * n + start + tl.arange(0, BLOCK))
    tl.store(y + row, tl.sum(total))
"""
)
LOAD = line_of(KERNEL, "total +=")
STREAM = at(LOAD, (Op.GLOBAL_LOAD, 4, 2), (Op.OTHER, 0, 10), depth=1)


def test_registers_bind() -> None:
    (item,) = found(LowOccupancy(), subject(KERNEL, launch(STREAM, registers=255, warps=4)))
    assert item.line == line_of(KERNEL, "def kernel")
    assert "occupancy 12 %, limited by registers (255 a thread, 4 warps a block)" in item.message
    assert item.message.endswith("168 would fit 3 blocks")


def test_shared_memory_binds() -> None:
    code = launch(STREAM, shared_bytes=96 * 1024)
    (item,) = found(LowOccupancy(), subject(KERNEL, code))
    assert "limited by shared memory (96 KiB a block); 75 KiB would fit 3" in item.message


def test_the_same_code_is_judged_by_each_target() -> None:
    code = launch(STREAM, registers=200, warps=4)
    (on_h100,) = found(LowOccupancy(), subject(KERNEL, code))
    assert "12 %" in on_h100.message
    # Twice the registers for half as many warps of twice the lanes.
    (on_mi300,) = found(LowOccupancy(), subject(KERNEL, code, target=MI300))
    assert "25 %" in on_mi300.message
    assert on_mi300.cost < on_h100.cost


def test_many_bytes_in_flight_need_few_warps() -> None:
    wide = at(LOAD, (Op.GLOBAL_LOAD, 16, 16), (Op.OTHER, 0, 10), depth=1)
    assert found(LowOccupancy(), subject(KERNEL, launch(wide, registers=255))) == []


def test_not_where_the_grid_is_too_small_for_more_blocks() -> None:
    code = launch(STREAM, registers=255, grid=(200, 1, 1))
    assert found(LowOccupancy(), subject(KERNEL, code)) == []


def test_not_for_a_product_on_the_matrix_unit() -> None:
    dot = DotCode(LOAD, ("bf16", "bf16"), "f32", MatrixPath.TENSOR, (128, 256, 64), None, 1)
    code = launch(STREAM, registers=255, dots=(dot,))
    assert found(LowOccupancy(), subject(KERNEL, code)) == []


def test_not_where_enough_warps_are_resident() -> None:
    assert found(LowOccupancy(), subject(KERNEL, launch(STREAM, registers=64))) == []
