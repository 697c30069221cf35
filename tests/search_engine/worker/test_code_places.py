"""Rows of PTX and amdgcn text by line of the user's text."""

import pytest

from search_engine.worker.code_places import UserText, located_rows

USER = UserText("/tmp/versions/0123456789abcdef/kernels.py", "/home/me/kernels.py")
PTX = """\
.visible .entry kernel(
	.param .u64 p)
{
	.loc	1 11 0                          // kernels.py:11:0
	mov.u32 	%r1, %tid.x;
	.loc	2 170 27                        // standard.py:170:27 @[ standard.py:191:40 @[ kernels.py:16:19 ] ]
	max.f32 	%f1, %f2, %f3;
	.loc	1 7 18                          // kernels.py:7:18 @[ kernels.py:17:17 ]
	ex2.approx.f32 	%f4, %f1;
	.loc	1 0 0                           // kernels.py:0:0
	add.s32 	%r2, %r1, 1;
	.loc	2 12 3                          // standard.py:12:3
	add.s32 	%r2, %r1, 1;
	.loc	2 13 3, function_name $L__info_string0, inlined_at 1 21 4
	add.s32 	%r2, %r1, 1;
                                        // -- End function
}
	.file	1 "/tmp/versions/fedcba9876543210/kernels.py"
	.file	2 "/usr/lib/python3/triton/language/standard.py"
"""  # noqa: E501
AMDGCN = """\
kernel:
	.file	1 "/tmp/versions/0123456789abcdef" "kernels.py"
	.loc	1 30 0 prologue_end             ; kernels.py:30:0
	s_load_dwordx2 s[2:3], s[0:1], 0x0
	.file	2 "/usr/lib/python3/triton/language" "standard.py"
	.loc	2 263 15 is_stmt 0              ; standard.py:263:15 @[ standard.py:293:36 @[ kernels.py:18:51 ] ]
	v_add_f32_e32 v1, v2, v3
.Lfunc_end0:
	s_nop 0
"""  # noqa: E501


def at(text: str, part: str, user: UserText = USER) -> int | None:
    rows = text.split("\n")
    return located_rows(text, user)[next(i for i, row in enumerate(rows) if part in row)]


@pytest.mark.parametrize(
    ("part", "line"),
    [
        (".param", None),
        ("mov.u32", 10),
        ("max.f32", 15),  # a library function: where it is called
        ("ex2.approx", 6),  # a helper of the user's: its own statement
        ("// -- End", None),
    ],
)
def test_ptx(part, line):
    assert at(PTX, part) == line


def test_code_that_the_compiler_made_and_code_of_libraries_have_no_line():
    rows = located_rows(PTX, USER)
    found = [rows[i] for i, row in enumerate(PTX.split("\n")) if row.startswith("\tadd.s32")]
    assert found == [None, None, 20]


def test_inline_assembly_counts_its_own_rows_which_are_not_the_users():
    text = (
        "\t.loc\t1 9 4   // kernels.py:9:4\n\t// begin inline asm\n\t.loc\t1 10 4\n\tmov.u32;\n"
        "\t.loc\t1 11 4\n\tld.global;\n\t// end inline asm\n\tadd.s32;\n"
        "\t.loc\t1 12 4\n\tsub.s32;\n"
        '\t.file\t1 "/home/me/kernels.py"\n'
    )
    assert [at(text, part) for part in ("mov", "ld", "add", "sub")] == [8, 8, 8, 11]


def test_amdgcn():
    assert at(AMDGCN, "s_load_dwordx2") == 29
    assert at(AMDGCN, "v_add_f32") == 17
    assert at(AMDGCN, "s_nop") is None


def test_a_file_of_the_same_name_elsewhere_is_not_the_users():
    text = PTX.replace("/usr/lib/python3/triton/language/standard.py", "/elsewhere/kernels.py")
    assert at(text, "mov.u32") == 10
    assert at(text, "max.f32") is None  # the comment's `kernels.py` may be either


def test_the_users_own_path_and_any_scratch_file_of_the_name_are_the_text():
    assert USER.holds("/home/me/kernels.py")
    assert USER.holds("/tmp/versions/fedcba9876543210/kernels.py")
    assert not USER.holds("/tmp/versions/fedcba9876543210/others.py")
    assert not USER.holds("/work/kernels.py")
