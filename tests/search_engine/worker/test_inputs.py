"""Arguments of a call: what is declared, the same for every version, watched on all sides."""

import math

import pytest

from search_engine.domain.workload import Case, Distribution, Extent, TensorArgument, Values
from search_engine.worker.extents import bind, free_groups, groups, widen
from search_engine.worker.inputs import WorkloadError, build
from search_engine.worker.values import Variant, draw
from tests.search_engine.worker.versions import case, workload

torch = pytest.importorskip("torch")


def tensor_of(text: str, tmp_path, name="x", variant=Variant.NORMAL, seed=1):
    described = workload(text)
    return build(described.cases[0], described, seed, "cpu", tmp_path, variant).arguments[name]


@pytest.mark.parametrize(
    ("text", "check"),
    [
        ("x=f32[1000]{normal*2+5}", lambda x: 4.5 < x.mean() < 5.5 and 1.8 < x.std() < 2.2),
        ("x=f32[1000]{zeros}", lambda x: not x.any()),
        ("x=i64[1000]{3..5}", lambda x: set(x.tolist()) == {3, 4, 5}),
        ("x=i32[10]{permutation}", lambda x: sorted(x.tolist()) == list(range(10))),
        ("x=i64[7]{arange}", lambda x: x.tolist() == list(range(7))),
        ("x=b1[1000]{0.9}", lambda x: 850 < x.sum() < 950),
        ("x=f8e4m3[64]", lambda x: x.dtype is torch.float8_e4m3fn),
        ("x=f8e5m2[64]", lambda x: bool(x.float().isfinite().all())),
    ],
)
def test_distributions(text, check, tmp_path):
    assert check(tensor_of(text, tmp_path))


def test_offsets_start_at_zero_end_at_the_total_and_are_sorted(tmp_path):
    argument = TensorArgument("o", "i32", (Extent(9),), Values(Distribution.OFFSETS, (40.0,)))
    drawn = draw(argument, Variant.NORMAL, 3, "cpu", tmp_path).tolist()
    assert drawn[0] == 0 and drawn[-1] == 40 and drawn == sorted(drawn)


def test_a_seed_gives_the_same_values_and_another_seed_others(tmp_path):
    first, again, other = (tensor_of("x=f32[64]", tmp_path, seed=s) for s in (1, 1, 2))
    assert torch.equal(first, again) and not torch.equal(first, other)


@pytest.mark.parametrize("variant", list(Variant), ids=lambda v: v.name)
@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16", "f8e4m3"])
def test_variants_have_the_shape_and_say_what_they_are(variant, dtype, tmp_path):
    x = tensor_of(f"x={dtype}[20,30]", tmp_path, variant=variant).double()
    assert x.shape == (20, 30)
    finite = bool(x.isfinite().all())
    assert finite == (variant not in (Variant.INFINITE, Variant.NAN)) or dtype == "f8e4m3"
    if variant is Variant.CONSTANT_ROWS:
        assert bool((x == x[:, :1]).all())
    if variant is Variant.ZEROS:
        assert not x.any() and bool(x.signbit().any()) and not bool(x.signbit().all())
    if variant is Variant.DENORMALS and dtype == "f32":
        assert 0 < float(x.abs().max()) < 1.2e-37


def test_strides_are_those_declared(tmp_path):
    x = tensor_of("x=f32[3,4]@(1,3)", tmp_path)
    assert x.stride() == (1, 3)
    expanded = tensor_of("x=f32[3,4]@(0,1)", tmp_path)
    assert torch.equal(expanded[0], expanded[2])


def test_scalars_follow_named_extents(tmp_path):
    described = workload("x=f32[M:12,N:5] rows=M*N eps=1e-6 flag=true")
    bound = bind(described.cases[0], {"M": 3})
    arguments = build(bound, described, 1, "cpu", tmp_path).arguments
    assert (arguments["rows"], arguments["eps"], arguments["flag"]) == (15, 1e-6, True)


def test_equal_unnamed_extents_vary_together_and_literals_hold_theirs():
    square = case("x=f32[64,64] y=f32[64,7]")
    assert groups(bind(square, {64: 9})) == {9: 9, 7: 7}
    assert free_groups(case("x=f32[64,7] n=7")) == (64,)


def test_indices_stay_legal_when_the_table_shrinks(tmp_path):
    described = workload("table=f32[1000,8] ids=i64[50]{0..999}")
    bound = bind(described.cases[0], {1000: 10})
    ids = build(bound, described, 1, "cpu", tmp_path).arguments["ids"]
    assert int(ids.max()) < 10
    unrelated = bind(case("x=i32[1000]{0..255}"), {1000: 5})
    assert unrelated.arguments[0].values.parameters == (0.0, 255.0)


def test_a_range_that_cannot_be_filled_is_a_workload_error(tmp_path):
    argument = TensorArgument("x", "i64", (Extent(9),), Values(Distribution.DISTINCT, (4.0,)))
    broken = Case((argument,))
    with pytest.raises(WorkloadError, match="x"):
        build(broken, workload("x=f32[9]"), 1, "cpu", tmp_path)


def test_bf16_becomes_f32_for_the_interpreter():
    widened, names = widen(case("x=bf16[4] y=f16[4]"))
    assert [a.dtype for a in widened.arguments] == ["f32", "f16"] and names == ("x",)


def test_a_write_beside_or_into_an_input_is_noticed_and_undone(tmp_path):
    described = workload("x=f32[4,4]")
    inputs = build(described.cases[0], described, 1, "cpu", tmp_path)
    x = inputs.arguments["x"]
    before = x.clone()
    assert inputs.changed() is None
    x.as_strided((1,), (1,), x.storage_offset() + 16).fill_(0.0)
    assert inputs.changed() == "x" and torch.equal(x, before)
    inputs.restore_all()
    assert inputs.changed() is None
    x[0, 0] = math.pi
    assert inputs.changed() == "x"


def test_buffers_are_aligned_or_one_element_off(tmp_path):
    described = workload("x=f32[5]")
    aligned, off = (
        build(described.cases[0], described, 1, "cpu", tmp_path, misaligned=m).arguments["x"]
        for m in (False, True)
    )
    assert aligned.data_ptr() % 16 == 0 and off.data_ptr() % 16 == 4
