"""Grouped order of tiles: what is rewritten, that every tile is still done, what is left alone."""

from pathlib import Path

import pytest
from matmul_files import FILES, OPERANDS, SQUARE
from rule_runs import RunCase, compile_native, interpret, offered, rewritten

from search_engine.domain.candidate import Numerics
from search_engine.rules.group_programs import GroupPrograms

RULE = GroupPrograms()
SIZES = (("1, 1", "1, 1"), ("129, 35", "35, 161"), ("200, 33", "33, 40"))


def cases(sizes: tuple[tuple[str, str], ...]) -> list[RunCase]:
    found: list[RunCase] = []
    for name, (text, entry) in FILES.items():
        new = rewritten(RULE, text, *OPERANDS)
        for left, right in sizes:
            arguments = tuple(f"torch.randn({size}, generator=g)" for size in (left, right))
            found.append(RunCase(f"{name} {left} {right}", new, entry, arguments, "x[0] @ x[1]"))
    return found


def test_results_stay_right_at_odd_sizes(tmp_path: Path):
    assert interpret(cases(SIZES), tmp_path) == {}


def test_results_compile_for_hopper(tmp_path: Path):
    assert compile_native(cases((("256, 128", "128, 256"),)), tmp_path) == {}


def test_the_rewrite_is_exact_and_offers_group_sizes():
    (rewrite,) = offered(RULE, SQUARE, *OPERANDS)
    assert rewrite.numerics is Numerics.EXACT
    assert {a.name for c in rewrite.configurations for a in c} == {"GROUP_M"}


def test_a_grouped_kernel_is_left_alone():
    assert offered(RULE, rewritten(RULE, SQUARE, *OPERANDS), *OPERANDS) == ()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("tl.dot(a, b)", "tl.sum(a, axis=1)[:, None] + b", id="no product"),
        pytest.param("i * BM + ", "i * BM + i + ", id="id used otherwise"),
        pytest.param("j = tl.program_id(1)", "j = tl.program_id(1) % 3", id="id computed"),
    ],
)
def test_other_uses_of_the_program_ids_are_left_alone(old: str, new: str):
    assert old in SQUARE
    assert offered(RULE, SQUARE.replace(old, new), *OPERANDS) == ()


def test_a_flat_grid_needs_rows_times_columns():
    text, _ = FILES["flat"]
    assert offered(RULE, text.replace(") * triton.cdiv(n", ") + triton.cdiv(n"), *OPERANDS) == ()
