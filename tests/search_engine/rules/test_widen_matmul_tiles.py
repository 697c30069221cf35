"""Wider tiles: what is rewritten, that the domain stays, what is left alone."""

from pathlib import Path

from matmul_files import FILES, FLAT, NARROW, ONE_SIZE, OPERANDS, SQUARE
from rule_runs import RunCase, compile_native, interpret, offered, rewritten, tensor

from search_engine.domain.candidate import Numerics, Rewrite
from search_engine.rules.group_programs import GroupPrograms
from search_engine.rules.widen_matmul_tiles import WidenMatmulTiles

RULE = WidenMatmulTiles()
SIZES = (("1, 1", "1, 1"), ("129, 70", "70, 257"), ("300, 33", "33, 40"))


def cases(sizes: tuple[tuple[str, str], ...], cast: str = "") -> list[RunCase]:
    texts = {name: (rewritten(RULE, t, *OPERANDS), entry) for name, (t, entry) in FILES.items()}
    grouped = rewritten(RULE, rewritten(GroupPrograms(), SQUARE, *OPERANDS), *OPERANDS)
    texts["after grouping"] = (grouped, "matmul")
    return [
        RunCase(
            f"{name} {left} {right}",
            text,
            entry,
            tuple(f"torch.randn({size}, generator=g){cast}" for size in (left, right)),
            "x[0] @ x[1]",
        )
        for name, (text, entry) in texts.items()
        for left, right in sizes
    ]


def sizes_of(rewrite: Rewrite, name: str) -> set[int]:
    return {int(a.value) for c in rewrite.configurations for a in c if a.name == name}


def test_results_stay_right_at_odd_sizes(tmp_path: Path):
    assert interpret(cases(SIZES), tmp_path) == {}


def test_results_compile_for_hopper_within_its_limits(tmp_path: Path):
    assert compile_native(cases((("256, 128", "128, 512"),), ".bfloat16()"), tmp_path) == {}


def test_constants_change_where_they_stand_and_the_grid_follows():
    own = rewritten(RULE, FLAT, *OPERANDS)
    assert "    BLOCK_M = 128\n" in own
    assert "triton.cdiv(m, BLOCK_M) * triton.cdiv(n, BLOCK_N)" in own
    literal = rewritten(RULE, SQUARE, *OPERANDS)
    assert 'triton.cdiv(M, meta["BM"]), triton.cdiv(N, meta["BN"])' in literal


def test_the_inner_sum_is_declared_as_reordered():
    (rewrite,) = offered(RULE, SQUARE, *OPERANDS)
    assert rewrite.numerics is Numerics.REASSOCIATES


def test_the_first_set_fills_the_device():
    (wide,) = offered(RULE, SQUARE, *OPERANDS)
    (narrow,) = offered(RULE, SQUARE, *NARROW)
    area = [
        int(rewrite.configurations[0][0].value) * int(rewrite.configurations[0][1].value)
        for rewrite in (wide, narrow)
    ]
    assert area[0] > area[1]


def test_an_inner_block_without_a_mask_keeps_its_size():
    text = SQUARE.replace(" & (left < K)", "").replace("(right < K) & ", "")
    (rewrite,) = offered(RULE, text, *OPERANDS)
    assert sizes_of(rewrite, "BK") == set()
    assert sizes_of(rewrite, "BM") == {64, 128, 256}
    assert "BK=32" in rewritten(RULE, text, *OPERANDS)


def test_a_tail_that_is_not_filled_with_zeros_keeps_its_size():
    (rewrite,) = offered(RULE, SQUARE.replace(", other=0.0", "", 1), *OPERANDS)
    assert sizes_of(rewrite, "BK") == set()


def test_rows_without_a_mask_keep_their_block():
    text = SQUARE.replace("mask=(rows < M) & (cols < N)", "mask=cols < N")
    (rewrite,) = offered(RULE, text, *OPERANDS)
    assert sizes_of(rewrite, "BM") == set()


def test_an_entry_that_checks_divisibility_is_left_alone():
    text = SQUARE.replace("    N = b", "    assert K % 32 == 0\n    N = b")
    assert offered(RULE, text, *OPERANDS) == ()


def test_one_size_for_all_three_stays_one_size():
    (rewrite,) = offered(RULE, ONE_SIZE, *OPERANDS)
    assert sizes_of(rewrite, "SIZE") == {64}


def test_wide_tiles_and_kernels_without_a_product_are_left_alone():
    assert offered(RULE, rewritten(RULE, SQUARE, *OPERANDS), *OPERANDS) == ()
    text = SQUARE.replace("tl.dot(a, b)", "tl.sum(a, axis=1)[:, None] + b")
    assert offered(RULE, text, *OPERANDS) == ()


def test_single_precision_takes_smaller_inner_blocks():
    operands = (tensor("a", "f32", 4096, 4096), tensor("b", "f32", 4096, 4096))
    (rewrite,) = offered(RULE, SQUARE.replace("BK=32", "BK=16"), *operands)
    assert sizes_of(rewrite, "BK") == {32}
