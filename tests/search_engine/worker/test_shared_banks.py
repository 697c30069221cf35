"""Bank conflicts are worked out from the addresses of the 32 lanes of a warp."""

from search_engine.worker.shared_banks import shared_accesses

HEAD = (
    ".visible .entry kernel()\n{\n\tld.param.b32 %r90, [kernel_param_0];\n\tmov.u32 %r1, %tid.x;\n"
)


def conflicts(body: str) -> list[tuple[int, int]]:
    text = HEAD + body + "}\n"
    lines = [7] * len(text.splitlines())
    return [(item.wavefronts, item.least_wavefronts) for item in shared_accesses(text, lines)]


def test_neighbouring_words_take_one_cycle_and_a_stride_of_32_words_takes_32() -> None:
    body = "\tshl.b32 %r2, %r1, {};\n\tadd.s32 %r3, global_smem, %r2;\n"
    store = "\tst.shared.b32 [%r3], %r9;\n"
    assert conflicts(body.format(2) + store) == [(1, 1)]
    assert conflicts(body.format(7) + store) == [(32, 1)]
    assert conflicts(body.format(3) + store) == [(2, 1)]


def test_one_word_for_all_lanes_is_broadcast() -> None:
    assert conflicts("\tld.shared.b32 %r4, [global_smem+16];\n") == [(1, 1)]


def test_a_swizzle_that_removes_the_conflict() -> None:
    body = (
        "\tshl.b32 %r2, %r1, 7;\n\tand.b32 %r4, %r1, 31;\n\tshl.b32 %r5, %r4, 2;\n"
        "\txor.b32 %r6, %r2, %r5;\n\tld.shared.b32 %r9, [%r6];\n"
    )
    assert conflicts(body) == [(1, 1)]


def test_wide_accesses_are_served_in_quarters() -> None:
    body = "\tshl.b32 %r2, %r1, {};\n\tld.shared.v4.b32 {{%r10, %r11, %r12, %r13}}, [%r2];\n"
    assert conflicts(body.format(4)) == [(4, 4)]
    assert conflicts(body.format(7)) == [(32, 4)]


def test_rows_of_a_matrix_load() -> None:
    body = (
        "\tshl.b32 %r2, %r1, {};\n"
        "\tldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%r10, %r11, %r12, %r13}}, [%r2];\n"
    )
    assert conflicts(body.format(4)) == [(4, 4)]
    assert conflicts(body.format(7)) == [(32, 4)]


def test_a_part_that_all_lanes_share_changes_nothing() -> None:
    body = (
        "\tshl.b32 %r2, %r90, 14;\n\tshl.b32 %r3, %r1, 7;\n\tadd.s32 %r4, %r3, %r2;\n"
        "\tst.shared.b32 [%r4], %r9;\n"
    )
    assert conflicts(body) == [(32, 1)]


def test_what_is_not_known_is_left_out() -> None:
    mixed = "\txor.b32 %r4, %r1, %r90;\n\tst.shared.b32 [%r4], %r9;\n"
    loaded = "\tld.global.b32 %r4, [%rd1];\n\tst.shared.b32 [%r4], %r9;\n"
    scaled = "\tmul.lo.s32 %r4, %r1, %r90;\n\tst.shared.b32 [%r4], %r9;\n"
    assert conflicts(mixed) == conflicts(loaded) == conflicts(scaled) == []


def test_only_active_lanes_count() -> None:
    body = (
        "\tsetp.lt.u32 %p1, %r1, 4;\n\tshl.b32 %r2, %r1, 7;\n"
        "\t@%p1 st.shared.b32 [ %r2 + 0 ], %r9;\n"
    )
    assert conflicts(body) == [(4, 1)]
    unknown = "\tsetp.lt.u32 %p1, %r1, %r90;\n\t@%p1 st.shared.b32 [%r1], %r9;\n"
    assert conflicts(unknown) == []


def test_lines_kinds_widths_and_loops_are_kept_apart() -> None:
    filler = "\tadd.s32 %r50, %r50, 1;\n" * 8
    body = (
        "\tst.shared.b32 [%r1], %r9;\n$L__BB0_2:\n" + filler + "\tst.shared.b32 [%r1], %r9;\n"
        "\tld.shared.b8 %r5, [%r1];\n\t@%p3 bra $L__BB0_2;\n"
    )
    text = HEAD + body + "}\n"
    rows = text.splitlines()
    found = shared_accesses(text, [3 if "ld.shared" in row else 2 for row in rows])
    kinds = [(item.line, item.loop_depth, item.store, item.width_bytes) for item in found]
    assert kinds == [(2, 0, True, 4), (2, 1, True, 4), (3, 1, False, 1)]
    assert [item.count for item in found] == [1, 1, 1]
