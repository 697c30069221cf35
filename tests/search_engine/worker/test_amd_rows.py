"""amdgcn text by line: places, loop depths, spills, divisions, classes and widths."""

import pytest

from search_engine.domain.code import MachineOperation as Op
from search_engine.worker.amd_operations import operation, width_bytes
from search_engine.worker.amd_rows import amd_rows
from search_engine.worker.code_places import UserText

USER = UserText("/tmp/versions/0123456789abcdef/kernels.py", "/home/me/kernels.py")
HEAD = (
    'kernel:                                 ; @kernel\n; %bb.0:\n'
    '\t.file\t1 "/tmp/versions/0123456789abcdef" "kernels.py"\n'
    "\t.loc\t1 5 0                           ; kernels.py:5:0\n"
)  # fmt: skip
LOOPS = """\
	s_branch .LBB0_1
.LBB0_1:                                ; =>This Loop Header: Depth=1
                                        ;     Child Loop BB0_2 Depth 2
	.loc	1 8 4                           ; kernels.py:8:4
	global_load_dwordx4 v[0:3], v[4:5], off
.LBB0_2:                                ;   Parent Loop BB0_1 Depth=1
                                        ; =>  This Inner Loop Header: Depth=2
	v_add_f32_e32 v1, v2, v3
; %bb.3:                                ;   in Loop: Header=BB0_1 Depth=1
	s_cbranch_scc1 .LBB0_1
; %bb.4:
	s_endpgm
"""


def kinds(text: str) -> list[Op]:
    return [row.operation for row in amd_rows(HEAD + text, USER) if row.operation]


def test_lines_and_depths():
    rows = [row for row in amd_rows(HEAD + LOOPS, USER) if row.operation]
    assert [(row.line, row.loop_depth) for row in rows] == [
        (4, 0), (7, 1), (7, 2), (7, 1), (7, 0),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "rest", "kind", "width"),
    [
        ("buffer_load_dwordx4", "v[0:3], v1, s[0:3], 0 offen", Op.GLOBAL_LOAD, 16),
        ("buffer_load_dword", "v1, s[0:3], 0 offen lds", Op.ASYNC_COPY, 4),
        ("global_load_lds_dwordx4", "v1, s[0:1]", Op.ASYNC_COPY, 16),
        ("global_load_ushort", "v1, v[2:3], off", Op.GLOBAL_LOAD, 2),
        ("global_store_byte", "v[2:3], v1, off", Op.GLOBAL_STORE, 1),
        ("ds_read2st64_b64", "v[0:3], v1", Op.SHARED_LOAD, 16),
        ("ds_read_b64_tr_b16", "v[0:1], v2", Op.SHARED_LOAD, 8),
        ("ds_write_b16_d16_hi", "v0, v1", Op.SHARED_STORE, 2),
        ("ds_bpermute_b32", "v0, v1, v2", Op.SHUFFLE, 4),
        ("global_atomic_add_f32", "v0, v1, off", Op.ATOMIC, 4),
        ("global_atomic_pk_add_bf16", "v[0:1], v2, off", Op.ATOMIC, 4),
        ("global_atomic_cmpswap", "v0, v[1:2], v[3:4], off", Op.ATOMIC_CAS, 4),
        ("ds_add_u32", "v0, v1", Op.ATOMIC, 4),
        ("scratch_store_dwordx2", "off, v[0:1], off ; 8-byte Folded Spill", Op.SPILL_STORE, 8),
        ("scratch_load_dword", "v0, off, off ; 4-byte Folded Reload", Op.SPILL_LOAD, 4),
        ("scratch_load_dword", "v0, v1, off", Op.LOCAL_LOAD, 4),
    ],
)
def test_memory(name, rest, kind, width):
    assert operation(name, rest) is kind
    assert width_bytes(name) == width


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("v_mfma_f32_32x32x8_f16", Op.MATRIX),
        ("v_fma_f32", Op.FP32),
        ("v_pk_mul_f32", Op.FP32),
        ("v_cmp_gt_f32_e32", Op.OTHER),
        ("v_mul_f64", Op.FP64),
        ("v_cvt_f64_f32_e32", Op.CONVERSION),
        ("v_exp_f32_e32", Op.SPECIAL),
        ("v_mov_b32_dpp", Op.SHUFFLE),
        ("s_barrier", Op.BARRIER),
        ("s_cbranch_scc1", Op.BRANCH),
        ("s_load_dwordx8", Op.OTHER),
        ("buffer_wbl2", Op.OTHER),
    ],
)
def test_arithmetic_and_control(name, kind):
    assert operation(name, "v0, v1") is kind


RECIPROCAL = (
    "\tv_cvt_f32_u32_e32 v1, v9\n\tv_rcp_iflag_f32_e32 v1, v1\n"
    "\tv_mul_f32_e32 v1, 0x4f7ffffe, v1\n\tv_cvt_u32_f32_e32 v1, v1\n"
    "\tv_mul_lo_u32 v2, v8, v1\n\tv_mul_hi_u32 v2, v1, v2\n\tv_add_u32_e32 v1, v1, v2\n"
)


def test_quotients_of_one_divisor_count_each():
    quotients = "\tv_mul_hi_u32 v4, v5, v1\n\tv_mul_hi_u32 v6, v7, v1\n"
    assert kinds(RECIPROCAL + quotients).count(Op.INTEGER_DIVISION) == 2
    assert kinds(RECIPROCAL).count(Op.INTEGER_DIVISION) == 1


def test_a_64_bit_division_with_its_short_way_counts_once():
    long = "\tv_rcp_f32_e32 v3, v3\n\tv_mul_f32_e32 v3, 0x5f7ffffc, v3\n"
    assert kinds(long + RECIPROCAL).count(Op.INTEGER_DIVISION) == 1
