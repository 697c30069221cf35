"""Dots off the matrix unit are shown with the reason; full precision that was asked for says so."""

from code_subjects import (
    HEADER,
    L40S,
    at,
    found,
    launch,
    line_of,
    pointer,
    subject,
)

from search_engine.domain.code import DotCode, LaunchCode, MatrixPath
from search_engine.domain.code import MachineOperation as Op
from search_engine.findings.tensor_core_missed import TensorCoreMissed

KERNEL = (
    HEADER
    + """@triton.jit
def kernel(a_ptr, b_ptr, s_ptr, c_ptr, K, N: tl.constexpr):
    i = tl.arange(0, N)
    a_ptrs = a_ptr + i[:, None] * K + i[None, :]
    b_ptrs = b_ptr + i[:, None] * N + i[None, :]
    total = tl.zeros((N, N), tl.float32)
    for k in range(0, K, N):
        a = tl.load(a_ptrs).to(tl.float32)
        b = tl.load(b_ptrs).to(tl.float32) * tl.load(s_ptr)
        total = tl.dot(a, b, total)
        a_ptrs += N
    tl.store(c_ptr + i[:, None] * N + i[None, :], total)
"""
)
DOT = line_of(KERNEL, "tl.dot")
PLAIN = KERNEL.replace(".to(tl.float32)", "")


def code(
    path: MatrixPath,
    operand: str,
    stored: str,
    *,
    precision: str | None = None,
    tile: tuple[int, int, int] = (128, 128, 64),
    fma: int = 8192,
) -> LaunchCode:
    dot = DotCode(DOT, (operand, operand), "f32", path, tile, precision, 1)
    pointers = (pointer("a_ptr", stored), pointer("b_ptr", stored))
    rest = (pointer("s_ptr"), pointer("c_ptr"))
    lines = (
        at(DOT - 2, (Op.GLOBAL_LOAD, 16, 8), depth=1),
        at(DOT, (Op.FP32, 0, fma), (Op.SHARED_LOAD, 16, 64), depth=1),
    )
    return launch(*lines, arguments=(*pointers, *rest), dots=(dot,))


def test_operands_cast_up_before_the_dot() -> None:
    slow = code(MatrixPath.FMA, "f32", "*fp16", precision="ieee")
    (item,) = found(TensorCoreMissed(), subject(KERNEL, slow))
    assert item.line == DOT
    assert item.message == "tl.dot runs on FMA: operands up-cast from fp16 to fp32"
    assert item.cost > 0.5


def test_cast_up_operands_on_the_unit_run_at_half_the_rate() -> None:
    tf32 = code(MatrixPath.TENSOR, "f32", "*bf16", precision="tf32", fma=0)
    (item,) = found(TensorCoreMissed(), subject(KERNEL, tf32))
    assert item.message == "tl.dot runs at the tf32 rate: operands up-cast from bf16 to fp32"
    slow = code(MatrixPath.FMA, "f32", "*bf16", precision="ieee")
    assert item.cost < found(TensorCoreMissed(), subject(KERNEL, slow))[0].cost


def test_real_fp32_in_full_precision_is_told_as_the_authors_choice() -> None:
    full = code(MatrixPath.FMA, "f32", "*fp32", precision="ieee")
    (item,) = found(TensorCoreMissed(), subject(PLAIN, full))
    assert "in full precision, as asked for" in item.message


def test_a_tile_below_the_units_rows() -> None:
    small = code(MatrixPath.FMA, "f16", "*fp16", tile=(8, 128, 64), fma=512)
    (item,) = found(TensorCoreMissed(), subject(PLAIN, small))
    assert item.message == "tl.dot runs on FMA: 8x128x64 is below the matrix unit's 16 rows"


def test_the_cost_follows_the_targets_matrix_rate() -> None:
    slow = code(MatrixPath.FMA, "f32", "*fp16", precision="ieee")
    on_h100 = found(TensorCoreMissed(), subject(KERNEL, slow))[0].cost
    on_l40s = found(TensorCoreMissed(), subject(KERNEL, slow, target=L40S))[0].cost
    assert on_h100 > on_l40s  # 60 times the multiply-add rate there, 8 times here


def test_the_unit_at_its_full_rate_is_fine() -> None:
    assert found(TensorCoreMissed(), subject(PLAIN, code(MatrixPath.TENSOR, "f16", "*fp16"))) == []
    tf32 = code(MatrixPath.TENSOR, "f32", "*fp32", precision="tf32")
    assert found(TensorCoreMissed(), subject(PLAIN, tf32)) == []


def test_operands_that_were_computed_in_fp32_are_no_cast() -> None:
    computed = KERNEL.replace("tl.load(b_ptrs).to(tl.float32)", "tl.exp(tl.load(b_ptrs))")
    tf32 = code(MatrixPath.TENSOR, "f32", "*bf16", precision="tf32")
    assert found(TensorCoreMissed(), subject(computed, tf32)) == []


def test_a_dot_of_doubles_or_wide_integers_has_no_unit() -> None:
    for operand, stored in (("f64", "*fp64"), ("i32", "*i32")):
        assert (
            found(TensorCoreMissed(), subject(PLAIN, code(MatrixPath.FMA, operand, stored))) == []
        )


SUMS = (
    HEADER
    + """@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(a_ptr + i[:, None] * N + i[None, :])
    b = tl.load(b_ptr + i[:, None] * N + i[None, :])
    c = tl.sum(a[:, :, None] * b[None, :, :], axis=1)
    d = tl.sum(a[:, None] * b, axis=0)
    tl.store(c_ptr + i[:, None] * N + i[None, :], c)
"""
)


def sums(dtype: str) -> LaunchCode:
    arguments = (pointer("a_ptr", dtype), pointer("b_ptr", dtype), pointer("c_ptr", dtype))
    lines = (
        at(line_of(SUMS, "c = tl.sum"), (Op.FP32, 0, 4096)),
        at(line_of(SUMS, "d = tl.sum"), (Op.FP32, 0, 4096)),
    )
    return launch(*lines, arguments=arguments)


def test_a_product_written_as_a_sum() -> None:
    (item,) = found(TensorCoreMissed(), subject(SUMS, sums("*fp16")))
    assert item.line == line_of(SUMS, "c = tl.sum")
    assert "tl.dot would use the matrix unit" in item.message
    # fp32 operands would lose precision there, and a product with a vector gains nothing.
    assert found(TensorCoreMissed(), subject(SUMS, sums("*fp32"))) == []
