"""Dots and layout conversions in Triton modules."""

from search_engine.domain.code import (
    DotCode,
    InstructionCount,
    LayoutConversion,
    LineCode,
    MachineOperation,
    MatrixPath,
)
from search_engine.worker.code_places import UserText
from search_engine.worker.ir_conversions import conversions
from search_engine.worker.ir_dots import dots, encodings
from search_engine.worker.ir_text import read_module

USER = UserText("/s/versions/0/kernels.py", "/k/kernels.py")
HEAD = """\
#blocked = #ttg.blocked<{sizePerThread = [4, 4], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0}>
#mfma = #ttg.amd_mfma<{version = 3}>
#tmem = #ttng.tensor_memory_encoding<blockM = 64>
"""
OPERAND = "#ttg.dot_op<{opIdx = 0, parent = #x}>"


def module(*rows: str, depth: int = 0) -> str:
    opened = "scf.for %i = %a to %b step %c  : i32 {\n" * depth
    closed = '} loc("/k/kernels.py":3:1)\n' * depth
    body = "\n".join(f'{row} loc("/k/kernels.py":9:1)' for row in rows)
    return f"module {{\n{opened}{body}\n{closed}}}\n"


def found(lowered: str, original: str = "") -> tuple[DotCode, ...]:
    return dots(read_module(lowered), read_module(original), encodings(HEAD), USER)


def tt_dot(encoding: str, kind: str = "f32", precision: str = "") -> str:
    return (
        f"%d = tt.dot %l, %r, %acc{precision} : tensor<64x32x{kind}, {OPERAND}> * "
        f"tensor<32x128x{kind}, {OPERAND}> -> tensor<64x128xf32, {encoding}>"
    )


def test_the_layout_of_the_result_tells_the_unit():
    (fma,) = found(module(tt_dot("#blocked")))
    assert fma == DotCode(8, ("f32", "f32"), "f32", MatrixPath.FMA, (64, 128, 32), "ieee", 0)
    (mma,) = found(module(tt_dot("#mma", "bf16")))
    assert (mma.path, mma.precision) == (MatrixPath.TENSOR, None)
    (mfma,) = found(module(tt_dot("#mfma", "f32", ", inputPrecision = tf32")))
    assert (mfma.path, mfma.precision) == (MatrixPath.TENSOR, "tf32")


def test_units_of_newer_cards():
    wgmma = (
        "%d = ttng.warp_group_dot %l, %r, %acc {inputPrecision = 0 : i32} : "
        "!ttg.memdesc<64x32xf16, #s, #smem> * !ttg.memdesc<32x64xf16, #s, #smem> "
        "-> tensor<64x64xf32, #mma>"
    )
    (dot,) = found(module(wgmma))
    assert (dot.path, dot.tile) == (MatrixPath.TENSOR, (64, 64, 32))
    tcgen05 = (
        "ttng.tc_gen5_mma %l, %r, %acc, %no, %yes, %bar[%yes] {is_async} : "
        "!ttg.memdesc<128x64xf8E5M2, #s>, !ttg.memdesc<64x256xf8E5M2, #s>, "
        "!ttg.memdesc<128x256xf32, #tmem, #ttng.tensor_memory>, !ttg.memdesc<1xi64, #s>"
    )
    (dot,) = found(module(tcgen05))
    assert dot.path is MatrixPath.TENSOR
    assert (dot.operand_types, dot.accumulator_type) == (("f8e5m2", "f8e5m2"), "f32")
    assert dot.tile == (128, 256, 64)


def test_copies_of_one_dot_are_one_at_its_greatest_depth():
    text = module(tt_dot("#mma", "f16"), depth=1) + module(tt_dot("#mma", "f16"))
    (dot,) = found(text)
    assert dot.loop_depth == 1


def test_the_precision_that_was_asked_for_stands_in_the_first_module():
    asked = module(tt_dot("#blocked", "f32", ", inputPrecision = tf32x3"))
    (dot,) = found(module(tt_dot("#mma", "f32", ", inputPrecision = tf32")), asked)
    assert dot.precision == "tf32x3"


def convert(target: str, kind: str = "f32") -> str:
    types = f"tensor<64x32x{kind}, #blocked> -> tensor<64x32x{kind}, {target}>"
    return f"%c = ttg.convert_layout %x : {types}"


def converted(text: str, *code: LineCode) -> tuple[LayoutConversion, ...]:
    return conversions(read_module(text), code, USER)


def line_code(line: int, operation: MachineOperation) -> LineCode:
    return LineCode(line, 0, (InstructionCount(operation, 4, 2),))


def test_conversions_with_their_bytes_and_loops():
    text = module(convert("#b2", "f16"), depth=2)
    assert converted(text) == (LayoutConversion(8, 64 * 32 * 2, 2),)


def test_an_operand_brought_to_a_dot_is_no_conversion():
    assert converted(module(convert(OPERAND))) == ()


def test_a_conversion_that_writes_no_shared_memory_is_left_out():
    text = module(convert("#b2"))
    assert converted(text, line_code(8, MachineOperation.SHUFFLE)) == ()
    assert len(converted(text, line_code(8, MachineOperation.SHARED_STORE))) == 1
    assert len(converted(text, line_code(5, MachineOperation.SHUFFLE))) == 1


def test_a_tensor_put_into_a_buffer_and_read_back():
    load = "%y = ttg.local_load %buf : !ttg.memdesc<64x32xf32, #s> -> tensor<64x32xf32, #blocked>"
    own = "%buf = ttg.local_alloc %x : (tensor<64x32xf32, #b2>) -> !ttg.memdesc<64x32xf32, #s>"
    assert len(converted(module(own, load))) == 1
    pipelined = "%buf = ttg.local_alloc : () -> !ttg.memdesc<64x32xf32, #s>"
    assert converted(module(pipelined, load)) == ()
