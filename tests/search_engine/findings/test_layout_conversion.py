"""Conversions inside loops are shown with their size; others are not."""

from code_subjects import HEADER, at, found, launch, line_of, subject

from search_engine.domain.code import DotCode, LayoutConversion, MatrixPath
from search_engine.domain.code import MachineOperation as Op
from search_engine.findings.layout_conversion import LayoutConversionCheck

KERNEL = (
    HEADER
    + """@triton.jit
def kernel(a, c, K, N: tl.constexpr):
    i = tl.arange(0, N)
    total = tl.zeros((N, N), tl.float32)
    for k in range(0, K, N):
        x = tl.load(a + i[:, None] * K + k + i[None, :])
        total += tl.trans(x)
    tl.store(c + i[:, None] * N + i[None, :], total)
"""
)
TRANS = line_of(KERNEL, "tl.trans")
LOAD = at(TRANS - 1, (Op.GLOBAL_LOAD, 4, 8), depth=1)
EXCHANGE = at(TRANS, (Op.SHARED_STORE, 4, 32), (Op.SHARED_LOAD, 4, 32), depth=1)


def test_a_conversion_in_a_loop() -> None:
    code = launch(LOAD, EXCHANGE, conversions=(LayoutConversion(TRANS, 16384, 1),))
    (item,) = found(LayoutConversionCheck(), subject(KERNEL, code))
    assert item.line == TRANS
    assert item.message == "layout of 16 KiB converted through shared memory in each iteration"


def test_outside_loops_or_small_it_is_fine() -> None:
    for harmless in (LayoutConversion(TRANS, 16384, 0), LayoutConversion(TRANS, 512, 1)):
        code = launch(LOAD, EXCHANGE, conversions=(harmless,))
        assert found(LayoutConversionCheck(), subject(KERNEL, code)) == []


def test_it_hides_behind_a_large_product() -> None:
    dot = DotCode(TRANS, ("f16", "f16"), "f32", MatrixPath.TENSOR, (256, 256, 256), None, 1)
    code = launch(LOAD, EXCHANGE, conversions=(LayoutConversion(TRANS, 16384, 1),), dots=(dot,))
    assert found(LayoutConversionCheck(), subject(KERNEL, code)) == []
