"""What is proposed for a kernel, in which order, and what never is."""

import random
from pathlib import Path

import pytest

from proposers.sources import HEADER, SPELLINGS, context
from search_engine.domain.candidate import Assignment, Numerics, candidate_id
from search_engine.proposers.configurations import Configurations
from search_engine.proposers.limits import block_fits, dot_fits
from search_engine.proposers.tunables import find_tunables
from search_engine.targets.registry import target_named

EXAMPLES = Path(__file__).parents[3] / "examples"
MATRIX = {"a": (4096, 4096), "b": (4096, 4096)}


def settings(candidate):
    return {item.name: item.value for item in candidate.configuration}


def proposed(made, limit=24, seed=0):
    return Configurations(limit).propose(made, random.Random(seed))


def example(name, shapes, **more):
    return context((EXAMPLES / f"{name}.py").read_text(), shapes, **more)


@pytest.mark.parametrize(
    "made",
    [
        example("softmax", {"x": (8192, 8192)}),
        example("matmul", MATRIX, dtype="bf16"),
        example("tuned/matmul", MATRIX, dtype="bf16", target="gfx942"),
        example("tuned/transpose", {"x": (16384, 8192)}),
        context(SPELLINGS["autotune"], {"x": (1 << 20,)}),
    ],
    ids=["softmax", "matmul", "amd matmul", "tile", "autotune"],
)
class TestEveryProposal:
    def test_is_decided_by_the_seed_and_bounded_by_the_limit(self, made):
        assert proposed(made, 12, 5) == proposed(made, 12, 5)
        assert 0 < len(proposed(made, 7)) <= 7

    def test_is_new_distinct_and_named_by_its_content(self, made):
        candidates = proposed(made)
        ids = [candidate.id for candidate in candidates]
        assert len(set(ids)) == len(ids)
        assert made.node.id not in ids
        assert all(candidate.id == candidate_id(candidate.text) for candidate in candidates)

    def test_keeps_structure_and_names_its_parent(self, made):
        for candidate in proposed(made):
            assert candidate.parent == made.node.id
            assert candidate.structure == made.node.structure
            assert candidate.configuration

    def test_the_head_of_the_list_does_not_depend_on_chance(self, made):
        assert len({proposed(made, 24, seed)[0].id for seed in range(3)}) == 1


def test_matmul_starts_with_the_large_tile():
    best = settings(proposed(example("matmul", MATRIX, dtype="bf16"))[0])
    assert (best["BLOCK_M"], best["BLOCK_N"], best["BLOCK_K"]) == ("128", "256", "64")
    assert best["num_warps"] == "8"


def test_matmul_tries_groups():
    made = proposed(example("tuned/matmul", MATRIX, dtype="bf16"), 60)
    assert {"4", "16"} & {settings(candidate).get("GROUP_M") for candidate in made}


def test_few_rows_bring_small_tiles():
    made = example("matmul", {"a": (16, 4096), "b": (4096, 4096)}, dtype="bf16")
    assert settings(proposed(made)[0])["BLOCK_M"] == "16"


def test_row_kernels_try_a_block_as_long_as_the_row_with_several_warps():
    made = proposed(example("cross_entropy", {"logits": (8192, 32000)}, dtype="bf16"), 40)
    first = settings(made[0])
    assert first["BLOCK"] == "32768"
    warps = {settings(c).get("num_warps") for c in made if settings(c).get("BLOCK") == "4096"}
    assert len(warps) > 1


def test_both_aspect_ratios_of_a_tile():
    made = proposed(example("tuned/gather", {"table": (1000, 1024)}), 60)
    pairs = {(settings(c).get("TOKENS"), settings(c).get("BLOCK")) for c in made}
    assert ("32", "128") in pairs
    assert ("128", "32") in pairs


def test_amd_stays_within_16_warps_and_its_shared_memory():
    made = proposed(example("matmul", MATRIX, dtype="bf16", target="gfx942"), 60)
    for candidate in made:
        values = settings(candidate)
        assert int(values.get("num_warps", 4)) <= 16
        tile = [int(values.get(name, 32)) for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K")]
        stages = max(1, int(values.get("num_stages", 2)) - 1)
        assert stages * (tile[0] + tile[1]) * tile[2] * 2 <= 64 * 1024


def test_hints_of_the_rule_come_first_and_bad_ones_are_skipped():
    hints = (
        (Assignment("BLOCK", "4096"), Assignment("num_warps", "16")),
        (Assignment("NO_SUCH", "1"),),
        (Assignment("BLOCK", "64"),),
    )
    made = proposed(context(SPELLINGS["constant"], {"x": (1 << 20,)}, hints=hints))
    assert settings(made[0]) == {"BLOCK": "4096", "num_warps": "16"}
    assert settings(made[1]) == {"BLOCK": "64"}
    assert len(made) > 2


def test_a_covering_block_is_never_changed():
    for name in ("rope", "tuned/softmax"):
        made = proposed(example(name, {"x": (64, 128)}), 60)
        assert made
        assert {key for c in made for key in settings(c)} <= {"num_warps", "num_stages"}


ONE_BLOCK = (
    HEADER
    + """
@triton.jit
def k(x_ptr, out_ptr, n, BLOCK: tl.constexpr, ONE: tl.constexpr):
    row = tl.program_id(0)
    if ONE > 0:
        cols = tl.arange(0, ONE)
        x = tl.load(x_ptr + row * n + cols, mask=cols < n)
        tl.store(out_ptr + row * n + cols, x + 1, mask=cols < n)
    else:
        for start in range(0, n, BLOCK):
            cols = start + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + row * n + cols, mask=cols < n)
            tl.store(out_ptr + row * n + cols, x + 1, mask=cols < n)


def f(x):
    out = torch.empty_like(x)
    m, n = x.shape
    ONE = triton.next_power_of_2(n) if n <= 8192 else 0
    k[(m,)](x, out, n, BLOCK=256, ONE=ONE)
    return out
"""
)


def test_a_block_of_the_branch_for_longer_rows_is_not_tuned_for_this_one():
    made = proposed(context(ONE_BLOCK, {"x": (4096, 8192)}), 60)
    assert {key for c in made for key in settings(c)} <= {"num_warps", "num_stages"}
    assert settings(made[0])["num_warps"] == "32"


def test_nothing_of_the_users_own_list_is_proposed():
    made = proposed(context(SPELLINGS["autotune"], {"x": (1 << 20,)}), 200)
    values = [(settings(c).get("BLOCK", "128"), settings(c).get("num_warps", "4")) for c in made]
    assert ("128", "4") not in values
    assert ("256", "8") not in values


def test_an_entry_default_that_the_workload_overrides_is_left():
    text = SPELLINGS["entry default"]
    free = proposed(context(text, {"x": (1 << 20,)}), 60)
    given = proposed(context(text, {"x": (1 << 20,)}, scalars=("block",)), 60)
    assert any("BLOCK" in settings(candidate) for candidate in free)
    assert given
    assert not any("BLOCK" in settings(candidate) for candidate in given)


def test_a_sum_is_taken_in_another_order_and_a_copy_is_not():
    assert proposed(example("softmax", {"x": (64, 512)}))[0].numerics is Numerics.REASSOCIATES
    assert proposed(example("transpose", {"x": (64, 512)}))[0].numerics is Numerics.EXACT


def test_a_lineage_keeps_its_weakest_numerics_its_steps_and_its_settings():
    made = context(
        SPELLINGS["constant"], {"x": (1 << 20,)},
        numerics=Numerics.REASSOCIATES, steps=("Tile it",),
        rules=("tile",), configuration=(Assignment("num_stages", "2"),),
    )  # fmt: skip
    child = proposed(made)[0]
    assert child.numerics is Numerics.REASSOCIATES
    assert (child.steps, child.rules) == (("Tile it",), ("tile",))
    assert settings(child)["num_stages"] == "2"


def test_a_unit_without_tunables_gets_nothing():
    text = SPELLINGS["constant"].replace("x, out, n, BLOCK)", "*arguments)")
    made = context(text, {"x": (1 << 20,)})
    assert find_tunables(made.module, made.unit) == ()
    assert proposed(made) == ()


ATTENTION = (
    HEADER
    + """
@triton.jit
def attend(q, k, o, n, D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    dims = tl.arange(0, D)
    x = tl.load(q + rows[:, None] * D + dims[None, :], mask=rows[:, None] < n)
    acc = tl.zeros((BLOCK_M, D), dtype=tl.float32)
    for start in range(0, n, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        y = tl.load(k + cols[:, None] * D + dims[None, :], mask=cols[:, None] < n)
        acc = tl.dot(tl.dot(x, tl.trans(y)).to(y.dtype), y, acc)
    tl.store(o + rows[:, None] * D + dims[None, :], acc, mask=rows[:, None] < n)


def f(q, k):
    o = torch.empty_like(q)
    grid = lambda meta: (triton.cdiv(q.shape[0], meta["BLOCK_M"]),)
    attend[grid](q, k, o, q.shape[0], D=64, BLOCK_M=64, BLOCK_N=32)
    return o
"""
)


def test_attention_varies_its_tiles_and_never_the_head_dimension():
    made = proposed(context(ATTENTION, {"q": (4096, 64), "k": (4096, 64)}, dtype="bf16"))
    assert (settings(made[0])["BLOCK_M"], settings(made[0])["BLOCK_N"]) == ("128", "64")
    assert not any("D" in settings(candidate) for candidate in made)


class TestLimits:
    H200 = target_named("sm_90")

    def test_the_best_known_tile_fits_and_one_stage_more_does_not(self):
        assert dot_fits(self.H200, (128, 256, 64), 8, 4, 2)
        assert not dot_fits(self.H200, (128, 256, 64), 8, 5, 2)
        assert not dot_fits(self.H200, (128, 256, 64), 8, 4, 4)

    def test_an_accumulator_beyond_the_registers_does_not_fit(self):
        assert not dot_fits(self.H200, (256, 256, 32), 8, 2, 2)

    def test_blocks(self):
        assert block_fits(self.H200, 32768, 32)
        assert not block_fits(self.H200, 32768, 4)
        assert not block_fits(self.H200, 1 << 21, 32)
        assert not block_fits(target_named("gfx942"), 1024, 32)
