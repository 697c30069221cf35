"""NVIDIA listings by line: places, loops, spills, divisions, classes and widths."""

from search_engine.domain.code import MachineOperation as Op
from search_engine.worker.code_places import UserText
from search_engine.worker.code_rows import line_codes, listing
from search_engine.worker.sass_rows import nvidia_rows

USER = UserText("/tmp/versions/0123456789abcdef/kernels.py", "/home/me/kernels.py")
PTX = '\n\t.loc\t1 10 0  // kernels.py:10:0\n\tmov;\n\t.loc\t1 12 0  // kernels.py:12:0\n\tadd;\n' \
      '\t.file\t1 "/tmp/versions/0123456789abcdef/kernels.py"\n'  # fmt: skip
HEAD = "//--------------------- .text.kernel  --------------------------\n.text.kernel:\n"
TAIL = "//--------------------- SYMBOLS  --------------------------\n"


def rows_of(*code: str, ptx: str = PTX):
    body = "".join(
        f"{item}\n" if item.endswith(":") or item.startswith("\t//##")
        else f"        /*{16 * i:04x}*/                   {item} ;\n"
        for i, item in enumerate(code)
    )  # fmt: skip
    return nvidia_rows(HEAD + body + TAIL, ptx, USER)


def kinds(*code: str, ptx: str = PTX):
    return [
        (row.operation, row.width_bytes)
        for row in rows_of(*code, "EXIT", ptx=ptx)
        if row.operation is not None
    ][:-1]


def place(line: int, file: str = "/tmp/versions/0123456789abcdef/kernels.py") -> str:
    return f'\t//## File "{file}", line {line}'


def ptx_row(row: int) -> str:
    return place(row, ".nv_debug_ptx_txt")


def test_classes_and_widths():
    assert kinds(
        "LDG.E.128 R4, desc[UR6][R26.64]",
        "LDG.E.U16 R4, desc[UR6][R26.64]",
        "STG.E desc[UR6][R24.64], R20",
        "LDGSTS.E.BYPASS.128 [R32], desc[UR12][R4.64], P0",
        "UTMALDG.2D [UR8], [UR4], desc[UR6]",
        "LDSM.16.M88.4 R4, [R2]",
        "STS.64 [R2], R4",
        "HGMMA.64x64x16.F32 R24, gdesc[UR4], R24",
        "LDC R4, c[0x3][R2]",
        "LDC R1, c[0x0][0x28]",
        "LDC R4, c[0x3][UR2]",
        "ATOMG.E.ADD.F32x4.RN.STRONG.GPU PT, R4, desc[UR4][R2.64], R8",
        "RED.E.ADD.STRONG.GPU desc[UR4][R2.64], R8",
        "ATOMG.E.CAS.STRONG.GPU PT, R4, [R2], R8, R9",
        "HADD2.F32 R4, -RZ, R5.H0_H0",
        "F2FP.BF16.F32.PACK_AB R4, R5, R6",
        "DFMA R4, R6, R8, R10",
        "FFMA R4, R6, R8, R10",
        "MUFU.EX2 R4, R5",
        "SHFL.BFLY PT, R4, R5, 0x10, 0x1f",
        "BAR.SYNC.DEFER_BLOCKING 0x0",
        "IMAD R4, R5, R6, R7",
    ) == [
        (Op.GLOBAL_LOAD, 16), (Op.GLOBAL_LOAD, 2), (Op.GLOBAL_STORE, 4), (Op.ASYNC_COPY, 16),
        (Op.ASYNC_COPY, 16), (Op.SHARED_LOAD, 16), (Op.SHARED_STORE, 8), (Op.MATRIX, 0),
        (Op.CONSTANT_LOAD, 4), (Op.OTHER, 0), (Op.OTHER, 0), (Op.ATOMIC, 16), (Op.ATOMIC, 4),
        (Op.ATOMIC_CAS, 4), (Op.CONVERSION, 0), (Op.CONVERSION, 0), (Op.FP64, 0), (Op.FP32, 0),
        (Op.SPECIAL, 0), (Op.SHUFFLE, 0), (Op.BARRIER, 0), (Op.OTHER, 0),
    ]  # fmt: skip


def test_what_never_runs_is_not_counted():
    assert kinds("@!PT LDS RZ, [RZ]", "NOP") == []


def test_the_row_of_the_ptx_text_names_the_line_and_holds_until_the_next():
    rows = rows_of(
        place(9), ptx_row(3), "MOV R1, R2", "MOV R1, R2", ptx_row(5), "MOV R1, R2", "EXIT"
    )
    assert [row.line for row in rows if row.operation] == [9, 9, 11, 11]


def test_without_ptx_the_first_place_in_the_users_text_is_the_line():
    rows = rows_of(
        '\t//## File "/lib/triton/standard.py", line 293 inlined at "/home/me/kernels.py", line 18',
        "FADD R1, R2, R3", place(7), place(17), "MUFU.EX2 R1, R2",
        place(3, "/lib/triton/standard.py"), "FADD R1, R2, R3", "EXIT",
    )  # fmt: skip
    assert [row.line for row in rows if row.operation] == [17, 6, None, None]


def test_spill_code_that_no_row_of_the_ptx_text_names_takes_the_tables_line():
    spill = ("STL [R1], R2", "EXIT")
    rows = rows_of(place(12), ptx_row(1), *spill, place(99), *spill)
    assert [row.line for row in rows if row.operation] == [11, 11, None, None]


def test_loops_and_waits():
    body = ["IADD3 R1, R1, 0x1, RZ"] * 8
    rows = rows_of(
        "MOV R1, R2", ".L_x_0:", *body, "@P0 BRA `(.L_x_0)", ".L_x_1:",
        "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R2", "@!P0 BRA `(.L_x_1)", "EXIT",
        ".L_x_2:", "BRA `(.L_x_2)",
    )  # fmt: skip
    depths = [row.loop_depth for row in rows if row.operation]
    assert depths == [0, *[1] * 9, 0, 0, 0, 0]


def test_a_convergence_barrier_leads_to_where_it_was_set():
    body = ["IADD3 R1, R1, 0x1, RZ"] * 8
    rows = rows_of(
        ".L_x_0:", "BSSY B0, `(.L_x_1)", "@P0 BRA `(.L_x_2)", *body, ".L_x_2:", "BSYNC B0",
        ".L_x_1:", "@P1 BRA `(.L_x_0)", "EXIT",
    )  # fmt: skip
    assert [row.loop_depth for row in rows if row.operation] == [1] * 12 + [0]


def test_marked_spills_are_told_from_arrays():
    assert kinds('STL.64 [R1+0x8], R4 (*"SpillRefill"*)', "LDL R4, [R6+0x10]") == [
        (Op.SPILL_STORE, 8), (Op.LOCAL_LOAD, 4),
    ]  # fmt: skip


def test_without_marks_arrays_lie_where_the_ptx_text_puts_them():
    code = ("STL.64 [R1+0x8], R4", "LDL R4, [R1+0x40]", "LDL R4, [R6]")
    assert kinds(*code) == [(Op.SPILL_STORE, 8), (Op.SPILL_LOAD, 4), (Op.SPILL_LOAD, 4)]
    array = "\t.local .align 8 .b8 \t__local_depot0[32];\n"
    assert kinds(*code, ptx=PTX + array) == [
        (Op.LOCAL_STORE, 8), (Op.SPILL_LOAD, 4), (Op.LOCAL_LOAD, 4),
    ]  # fmt: skip


DIVISION = (
    "I2F.RP R5, R4",
    "MUFU.RCP R5, R5",
    "VIADD R6, R5, 0xffffffe",
    "F2I.FTZ.U32.TRUNC.NTZ R7, R6",
    "IMAD.MOV R11, RZ, RZ, -R7",
    "IMAD R11, R11, R4, RZ",
    "IMAD.HI.U32 R16, R7, R11, R6",
)


def divisions(*code: str) -> int:
    return sum(kind is Op.INTEGER_DIVISION for kind, _ in kinds(*code))


def test_quotients_of_one_divisor_count_each_and_its_reciprocal_does_not():
    quotients = [f"IMAD.HI.U32 R{20 + i}, R16, R{30 + i}, RZ" for i in range(3)]
    found = kinds(*DIVISION, *quotients)
    assert [kind for kind, _ in found].count(Op.INTEGER_DIVISION) == 3
    assert not any(kind in (Op.SPECIAL, Op.CONVERSION) for kind, _ in found)


def test_a_reciprocal_whose_quotients_are_hidden_counts_once():
    assert divisions(*DIVISION) == 1
    assert divisions(*DIVISION, "MOV R16, R2", "IMAD.HI.U32 R20, R16, R30, RZ") == 1


def test_a_64_bit_division_with_its_short_way_counts_once():
    call = "CALL.REL.NOINC `($__internal_0_$__cuda_sm20_div_s64)"
    assert divisions(*DIVISION, "IMAD.HI.U32 R20, R16, R30, RZ", call) == 1


def test_a_float_reciprocal_and_a_slow_path_are_no_integer_division():
    assert (
        divisions(
            "MUFU.RCP R5, R4",
            "CALL.REL.NOINC `($__internal_0_$__cuda_sm3x_div_rn_noftz_f32_slowpath)",
        )
        == 0
    )


def test_a_subroutine_behind_the_kernel_inherits_no_line():
    rows = rows_of(ptx_row(3), "MOV R1, R2", "EXIT", "I2F.U64.RP R5, UR6", "RET.REL.NODEC R6 0x0")
    assert [row.line for row in rows if row.operation] == [9, 9, None, None]
    assert all(row.operation is not Op.INTEGER_DIVISION for row in rows)


def test_counts_by_line_and_the_listing_agree():
    rows = rows_of(
        ptx_row(5), "LDG.E R1, [R2]", "LDG.E R3, [R2]", ".L_x_9:", "EXIT",
        ptx_row(1), "FADD R1, R2, R3",
    )  # fmt: skip
    counts = {(item.line, c.operation): c.count for item in line_codes(rows) for c in item.counts}
    assert counts == {(11, Op.GLOBAL_LOAD): 2, (11, Op.OTHER): 1, (None, Op.FP32): 1}
    text = listing("kernel", rows)
    assert len(text.text.split("\n")) == len(text.lines) == 6
    assert text.text.split("\n")[3] == ".L_x_9:"
