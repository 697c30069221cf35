"""Reading listings: widths, spills and matrix instructions, as the tools print them."""

from search_engine.worker.machine_code import CodeFacts, amd, binary_hash, from_sass

SASS = """\
softmax_kernel:
.text.softmax_kernel:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/              @!P0 LDG.E.LTC128B R20, desc[UR6][R24.64+0x1008] ;
        /*0020*/                   LDG.E.64 R20, desc[UR6][R24.64] ;
        /*0030*/                   LDGSTS.E.BYPASS.128 [R32], desc[UR12][R4.64], P0 ;
        /*0040*/                   STL.64 [R1], R0 ;
        /*0050*/              @P1  LDL R0, [R1] ;
        /*0060*/                   HGMMA.64x64x16.F32 R24, gdesc[UR4], R24 ;
        /*0070*/              @!UP0 UTCHMMA gdesc[UR4], gdesc[UR6], tmem[UR8] ;
        /*0080*/                   STG.E.128 desc[UR6][R24.64], R20 ;
        /*0090*/                   EXIT ;
.L_x_0:
        /*00a0*/                   BRA `(.L_x_0);
        /*00b0*/                   NOP;
"""

AMDGCN = (
    "kernel:\n"
    "\t.loc\t1 5 21\n"
    "\ts_load_dwordx8 s[4:11], s[0:1], 0x8\n"
    "\tbuffer_load_dwordx2 v[9:10], v1, s[20:23], 0 offen\n"
    "\tglobal_load_ushort v3, v[4:5], off\n"
    "\tscratch_store_dwordx4 off, v[0:3], off offset:16\n"
    "\tscratch_load_dword v9, off, off\n"
    "\tv_mfma_f32_32x32x8_f16 v[0:15], v[16:17], v[18:19], v[0:15]\n"
    "\ts_endpgm\n"
    "    .vgpr_count:     24\n"
)


def test_sass():
    assert from_sass(SASS, 48) == CodeFacts(48, 12, 2, 11, 16)


def test_sass_with_narrow_loads_only():
    listing = "        /*0010*/   LDG.E.LTC128B.U16 R20, desc[UR6][R24.64] ;\n"
    assert from_sass(listing, 8).widest_load_bytes == 2


def test_amdgcn():
    assert amd(AMDGCN) == CodeFacts(24, 20, 1, 7, 8)


def test_data_that_is_no_elf_file_still_has_a_hash():
    assert binary_hash(b"abc") != binary_hash(b"abd")
