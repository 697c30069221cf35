"""The plan visits the sizes, values and layouts at which kernels go wrong."""

import math

from search_engine.worker import plan
from search_engine.worker.extents import groups, tensors
from search_engine.worker.reach import has_float_atomics, reached_text, tiles
from search_engine.worker.values import Variant
from tests.search_engine.worker.versions import case, source, workload

DESCRIBED = workload("x=f32[M:4096,N:8192] w=f32[N]", "x=f32[M:128,N:1000] w=f32[N]")


def sizes_of(planned, group):
    return {groups(item.case)[group] for item in planned if group in groups(item.case)}


def test_full_plan_has_edges_variants_layouts_and_every_case():
    planned = plan.full(DESCRIBED, 1, ("M", "N"), (256,))
    assert {255, 256, 257, 1, 1021} <= sizes_of(planned, "N")
    assert {0, 1, 129} <= sizes_of(planned, "M")
    assert {item.variant for item in planned} == set(Variant)
    assert {"misaligned", "transposed inputs", "rows cut from wider ones"} <= {
        item.layout for item in planned
    }
    declared = [item.case for item in planned if item.declared]
    assert sorted(map(groups, declared), key=str) == sorted(map(groups, DESCRIBED.cases), key=str)
    assert all(item.repetitions == 3 for item in planned if item.declared)


def test_rows_longer_than_any_declared_one_are_visited():
    longest = 2 * 8192 + 1
    assert longest in sizes_of(plan.full(DESCRIBED, 1, ("M", "N"), (256,)), "N")
    (form,) = plan.interpreted_beyond(DESCRIBED, ("M", "N"))
    assert groups(form) == {"M": 2, "N": longest}
    # Extents that one case ties together stand apart in another, which then shows the long row.
    tied = workload("x=f32[8192,8192]", "x=f32[128,1000]")
    shapes = {tensors(item)[0].shape for item in plan.beyond(tied, (128, 1000))}
    assert (37, longest) in shapes and (longest, 67) in shapes


def test_relations_between_tensors_are_kept():
    for item in plan.full(DESCRIBED, 1, ("M", "N"), (256,)):
        x, w = tensors(item.case)
        assert x.shape[1] == w.shape[0]


def test_no_planned_edge_exceeds_the_memory_bound():
    huge = workload("x=f32[N:268435456]")
    edges = plan.edges(huge.cases[0], ("N",), ())
    assert edges
    assert all(math.prod(tensors(item)[0].shape) <= 1 << 26 for item in edges)


def test_smoke_is_one_odd_shape_and_the_smallest_case():
    first, second = plan.smoke(DESCRIBED, 1, ("M", "N"))
    assert groups(first.case) == {"M": 37, "N": 67}
    assert second.case == DESCRIBED.cases[1] and second.declared


def test_without_a_reference_only_named_extents_vary():
    mixed = case("x=f32[M:64,128]")
    assert plan.candidate_groups(mixed, True) == (("M", 128), ("M",))
    assert plan.candidate_groups(mixed, False) == (("M",),)


def test_interpreted_shapes_are_small_and_keep_relations():
    matmul = case("a=f32[M:4096,K:4096] b=f32[K,N:4096]")
    odd, even = plan.interpreted(matmul, ("M", "K", "N"))
    assert odd and even
    for form in (*odd, *even):
        a, b = tensors(form)
        assert a.shape[1] == b.shape[0] and math.prod(a.shape) <= 1 << 20
    assert all(n % 16 == 0 for form in even for n in groups(form).values())


TEXT = """
def unused():
    return tl.bfloat16

def helper(x):
    tl.atomic_add(x, 1)

def run(x, BLOCK=64):
    helper[(1,)](x, BLOCK_M=128, N=100)
"""


def test_only_reached_functions_are_read(tmp_path):
    version = source(tmp_path, TEXT)
    text = reached_text(version)
    assert "bfloat16" not in text and has_float_atomics(text)
    assert tiles(version) == (128, 64)
