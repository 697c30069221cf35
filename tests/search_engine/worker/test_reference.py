"""The truth is float64, says what it rounds, and cannot be a constant."""

import pytest

from search_engine.domain.workload import Reference
from search_engine.worker import reference
from search_engine.worker.inputs import build
from search_engine.worker.run import load_version
from tests.search_engine.worker.versions import version, workload

torch = pytest.importorskip("torch")


def truth(tmp_path, text, expression, **fields):
    described = workload(text, reference=expression, **fields)
    inputs = build(described.cases[0], described, 5, "cpu", tmp_path)
    parameters = ", ".join(inputs.arguments)
    module = load_version(version(tmp_path, "return x", f"{parameters}, eps=0.5")).module
    return inputs.arguments, reference.evaluate(described, module, inputs, 5)


def test_it_is_float64_of_exactly_widened_inputs(tmp_path):
    arguments, made = truth(tmp_path, "x=bf16[8,16]", "torch.softmax(x, -1)")
    assert torch.equal(made.tensors[0], torch.softmax(arguments["x"].double(), -1))
    assert made.notes == ()


def test_dtype_in_an_expression_is_the_declared_one(tmp_path):
    arguments, made = truth(tmp_path, "x=bf16[8,16]", "(x.float() * 1.1).to(x.dtype)")
    rounded = (arguments["x"].double() * 1.1).bfloat16().double()
    assert torch.equal(made.tensors[0], rounded)
    assert made.notes == ("the reference rounds to bfloat16",)


@pytest.mark.parametrize("cast", ["x.float()", "x.to(torch.float32)", "x.double()"])
def test_widening_casts_do_not_round(cast, tmp_path):
    arguments, made = truth(tmp_path, "x=bf16[8,16]", f"({cast} / 3).sum(-1)")
    assert torch.equal(made.tensors[0], (arguments["x"].double() / 3).sum(-1))


def test_mixed_dtypes_containers_and_integers(tmp_path):
    expression = "torch.stack([x, y]).sum(0), x.argmax(-1), torch.topk(y, 2).values"
    arguments, made = truth(tmp_path, "x=bf16[4,6] y=f32[4,6]", expression)
    x, y = arguments["x"].double(), arguments["y"].double()
    wanted = (x + y, x.argmax(-1), torch.topk(y, 2).values)
    assert all(torch.equal(a, b) for a, b in zip(made.tensors, wanted, strict=True))


def test_weights_made_by_setup_are_widened(tmp_path):
    setup = ("torch.manual_seed(0)", "layer = torch.nn.Linear(6, 3)")
    _, made = truth(tmp_path, "x=f32[4,6]", "layer(x)", setup=setup)
    assert made.tensors[0].dtype is torch.float64 and made.tensors[0].shape == (4, 3)


def test_defaults_of_the_entry_are_known(tmp_path):
    arguments, made = truth(tmp_path, "x=f32[4]", "x + eps")
    assert torch.equal(made.tensors[0], arguments["x"].double() + 0.5)


def test_gradients(tmp_path):
    arguments, made = truth(tmp_path, "x=f32[4,6]", "torch.sin(x)", gradients=("x",))
    assert len(made.tensors) == 2
    ratio = made.tensors[1] / torch.cos(arguments["x"].double())
    assert torch.equal(ratio.bfloat16().double(), ratio) or torch.allclose(
        ratio, ratio.bfloat16().double(), rtol=1e-14
    )


def test_outputs_are_matched_by_name_then_by_position():
    made = reference.Truth((torch.tensor(1), torch.tensor(2)), ("out", None), ())
    assert [int(t) for t in reference.align(made, ("result 0", "out"))] == [2, 1]
    with pytest.raises(reference.ReferenceError, match="nothing about output `other`"):
        reference.align(made, ("result 0", "out", "other"))
    with pytest.raises(reference.ReferenceError, match="1 more"):
        reference.align(made, ("out",))


def test_a_named_buffer_may_have_its_own_expression(tmp_path):
    described = (Reference("x * 2", "out", None),)
    _, made = truth(tmp_path, "x=f32[4] out=f32[4]!", None, references=described)
    assert made.names == ("out",)


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        ([1.0, 2.0], [1.0, 2.0], "does not depend"),
        ([1.0, 1.0], [2.0, 2.0], "the same"),
        ([1e-42, 2e-42], [3e-42, 1e-42], "too small"),
        ([1.0, 2.0], [3.0, 4.0], None),
    ],
)
def test_degenerate_outputs_are_no_oracle(first, second, reason):
    pair = [(torch.tensor(values, dtype=torch.float64),) for values in (first, second)]
    found = reference.why_no_oracle(*pair)
    assert (found is None) if reason is None else reason in found
