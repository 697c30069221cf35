"""The grammar of declarations, what is said about mistakes, and when a unit cannot be run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from search_engine.domain.codec import encode
from search_engine.domain.kernel import Module, Unit
from search_engine.domain.workload import (
    Distribution,
    Extent,
    Role,
    ScalarArgument,
    TensorArgument,
    Values,
    Workload,
    WorkloadProblem,
    WorkloadSource,
)
from search_engine.frontends.triton import parse_module
from search_engine.frontends.unit import find_unit
from search_engine.frontends.workload import (
    completions,
    declare,
    load_recorded,
    parse_workloads,
    workload_refusal,
)

HEAD = """\
import torch
import triton
import triton.language as tl

LIMIT = 4


@triton.jit
def kernel(p, n):
    tl.store(p, n)


"""
ENTRY = """\
def run(x, w=None, eps=1e-6, causal=False, grid=None, weight=None):
    kernel[(1,)](x, 4)
    return x
"""
DEFAULTS = "x=f32[4]"


def module_of(*lines: str, entry: str = ENTRY) -> Module:
    comments = "".join(f"# kernel-lsp: {line}\n" for line in lines)
    return parse_module(HEAD + comments + entry, "m.py")


def read(*lines: str, entry: str = ENTRY) -> tuple[Workload, tuple[WorkloadProblem, ...]]:
    workloads, problems = parse_workloads(module_of(*lines, entry=entry))
    assert len(workloads) == 1
    return workloads[0], problems


def good(*lines: str, entry: str = ENTRY) -> Workload:
    workload, problems = read(*lines, entry=entry)
    assert problems == ()
    return workload


def argument(text: str) -> TensorArgument | ScalarArgument:
    """The last argument of a case that also gives x."""
    items = text if text.startswith("x=") else f"x=f32[4] {text}"
    return good(f"workload {items}").cases[0].arguments[-1]


def tensor(text: str) -> TensorArgument:
    found = argument(text)
    assert isinstance(found, TensorArgument)
    return found


def test_case_of_weight_zero_is_checked_and_not_timed() -> None:
    workload = good("workload x=f32[4096,8192]", "workload x=f32[7,3] weight=0")
    assert [case.weight for case in workload.cases] == [1.0, 0.0]
    assert workload.timed == (0,)


def test_cases_with_weights_lines_and_source() -> None:
    workload = good("workload x=f32[4096,8192]", "workload x=bf16[7] weight=0.25 eps=1e-5")
    assert workload.entry == "run"
    assert workload.source is WorkloadSource.DECLARED
    assert [case.weight for case in workload.cases] == [1.0, 0.25]
    assert [case.line for case in workload.cases] == [12, 13]
    assert workload.cases[0].arguments == (
        TensorArgument(
            "x", "f32", (Extent(4096), Extent(8192)), Values(Distribution.NORMAL, (1.0, 0.0))
        ),
    )
    assert workload.cases[1].arguments[1] == ScalarArgument("eps", "1e-5")


def test_named_extents_are_shared_and_serve_scalars() -> None:
    case = good("workload x=bf16[M:8192,N:4_096] w=bf16[N] eps=M/N").cases[0]
    first, second, third = case.arguments
    assert isinstance(first, TensorArgument)
    assert isinstance(second, TensorArgument)
    assert first.extents == (Extent(8192, "M"), Extent(4096, "N"))
    assert second.extents == (Extent(4096, "N"),)
    assert third == ScalarArgument("eps", "M/N")


@pytest.mark.parametrize(
    ("text", "distribution", "parameters"),
    [
        ("x=f32[4]{normal}", Distribution.NORMAL, (1.0, 0.0)),
        ("x=f16[4]{normal*0.1}", Distribution.NORMAL, (0.1, 0.0)),
        ("x=bf16[4]{normal*0.1+1}", Distribution.NORMAL, (0.1, 1.0)),
        ("x=f64[4]{normal+-1e-3}", Distribution.NORMAL, (1.0, -0.001)),
        ("x=f8e4m3[4]", Distribution.NORMAL, (1.0, 0.0)),
        ("x=f32[4]{uniform -0.5..1.5}", Distribution.UNIFORM, (-0.5, 1.5)),
        ("x=f32[4]{zeros}", Distribution.ZEROS, ()),
        ("x=f32[4]{arange}", Distribution.ARANGE, ()),
        ("x=i64[4]{0..151_935}", Distribution.INTEGERS, (0.0, 151935.0)),
        ("x=i8[4]{-128..127}", Distribution.INTEGERS, (-128.0, 127.0)),
        ("x=i32[4]{sorted 0..9}", Distribution.SORTED, (0.0, 9.0)),
        ("x=i32[4]{offsets 4096}", Distribution.OFFSETS, (4096.0,)),
        ("x=i32[4]{distinct 4}", Distribution.DISTINCT, (4.0,)),
        ("x=i32[4]{permutation}", Distribution.PERMUTATION, ()),
        ("x=u8[256]{arange}", Distribution.ARANGE, ()),
        ("x=b1[4]{0.25}", Distribution.BERNOULLI, (0.25,)),
        ("x=b1[4]", Distribution.BERNOULLI, (0.5,)),
    ],
)
def test_values(text: str, distribution: Distribution, parameters: tuple[float, ...]) -> None:
    assert tensor(text).values == Values(distribution, parameters)


def test_strides_and_roles_in_any_order() -> None:
    assert tensor("x=f32[64,32]@(1,64)").strides == (1, 64)
    assert tensor("x=f32[4]!").role is Role.OUTPUT
    assert tensor("x=f32[4]!").values == Values(Distribution.ZEROS)
    both = tensor("x=i32[4,2]!!@(2,1){0..3}")
    assert (both.role, both.strides, both.shape) == (Role.INOUT, (2, 1), (4, 2))
    assert tensor("x=f32[]").shape == ()


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("causal=true", "True"),
        ("causal=None", "None"),
        ("eps=-1e-6", "-1e-6"),
        ("eps=(1, [2, 3])", "(1, [2, 3])"),
        ("eps='a b'", "'a b'"),
        ("eps=torch.float16", "torch.float16"),
        ("eps=float('inf')", "float('inf')"),
    ],
)
def test_scalars(text: str, expression: str) -> None:
    assert argument(text) == ScalarArgument(text.split("=")[0], expression)


def test_reserved_names() -> None:
    case = good("workload x=f32[4] weight=f32[8] grid_=7 weight=2").cases[0]
    assert case.weight == 2.0
    assert [a.name for a in case.arguments] == ["x", "weight", "grid"]


def test_continuation_comment_leaders_and_trailing_comments() -> None:
    text = (
        HEAD
        + "# a note\n#kernel-lsp: workload x=f32[4] \\\n#     w=f32[8]   # two lines\n"
        + "// kernel-lsp: tolerance k=4   # default 2\n#\n"
        + "# kernel-lsp: ignore[register-spill]\n@torch.no_grad()\n"
        + ENTRY
    )
    workloads, problems = parse_workloads(parse_module(text, "m.py"))
    assert workloads[0].tolerance_factor == 4.0
    assert [a.name for a in workloads[0].cases[0].arguments] == ["x", "w"]
    assert [problem.message for problem in problems] == []


def test_further_lines() -> None:
    workload = good(
        "setup scale = LIMIT * 2",
        "setup from math import prod as product",
        "workload x=f32[M:4]",
        "reference x=x * scale",
        "reference torch.relu(x) + product(x.shape) + sum(i for i in [M])",
        "allow lowers-precision any-tie",
        "inplace x, w",
        "call Layer(scale)(x)",
        "grad x",
        "bytes 2 * x.numel() * x.element_size()",
        "flops M * LIMIT",
        "deterministic",
    )
    assert workload.setup == ("scale = LIMIT * 2", "from math import prod as product")
    assert [(r.output, r.expression) for r in workload.references] == [
        ("x", "x * scale"),
        (None, "torch.relu(x) + product(x.shape) + sum(i for i in [M])"),
    ]
    assert workload.allow == ("lowers-precision", "any-tie")
    assert workload.inplace == ("x", "w")
    assert workload.call == "Layer(scale)(x)"
    assert workload.gradients == ("x",)
    assert workload.bytes_expression == "2 * x.numel() * x.element_size()"
    assert workload.flops_expression == "M * LIMIT"
    assert workload.deterministic


def test_an_equals_sign_in_a_reference_may_compare() -> None:
    assert good("workload x=f32[4]", "reference x == 1").references[0].output is None


def test_a_method_with_a_call_may_name_anything() -> None:
    entry = "class Layer:\n    def forward(self, x):\n        kernel[(1,)](x, 4)\n"
    text = HEAD + entry.replace(
        "    def",
        "    # kernel-lsp: workload x=f32[4] width=8\n"
        "    # kernel-lsp: call Layer(width)(x)\n    def",
    )
    workloads, problems = parse_workloads(parse_module(text, "m.py"))
    assert problems == ()
    assert workloads[0].entry == "Layer.forward"
    assert [a.name for a in workloads[0].cases[0].arguments] == ["x", "width"]


DTYPES = "f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, b1, f8e4m3, f8e5m2"
FORMS = "a..b, sorted a..b, offsets N, distinct N, permutation, zeros or arange"
TAKES = "run takes x, w, eps, causal, grid, weight"
KEYWORDS = (
    "workload, reference, tolerance, allow, inplace, setup, call, grad, bytes, flops, deterministic"
)

MISTAKES = [
    ("wrkload x=f32[4]", "KL801", 15,
     f"expected one of {KEYWORDS}, got `wrkload`; did you mean workload"),
    ("", "KL801", 15, f"expected one of {KEYWORDS}, got ``"),
    ("workload", "KL801", 23, "expected arguments, such as x=f32[4096,4096]"),
    ("workload x", "KL801", 24, "expected name=value, got `x`"),
    ("workload x=", "KL801", 25, "expected a value after `x=`"),
    ("workload x=fp32[4]", "KL801", 26, f"expected a dtype ({DTYPES}), got `fp32`; write f32"),
    ("workload x=g32[4]", "KL801", 26, f"expected a dtype ({DTYPES}), got `g32`"),
    ("workload x=f32[4", "KL801", 29, "expected `]` to close `[`"),
    ("workload x=f32[4,]", "KL801", 32, "expected a size or NAME:size, got ``"),
    ("workload x=f32[-4]", "KL801", 30, "expected a size or NAME:size, got `-4`"),
    ("workload x=f32[M]", "KL801", 30, "expected a size for M: write M:SIZE once"),
    ("workload x=f32[M:4] w=f32[M:5]", "KL801", 41, "expected one size for M, got 4 and 5"),
    ("workload x=f32[4,4]@(1)", "KL801", 36, "expected 2 strides, one per dimension, got 1"),
    ("workload x=f32[4]@(a)", "KL801", 34, "expected strides in elements, got `a`"),
    ("workload x=f32[4]?", "KL801", 32, "expected {values}, @(strides), ! or a blank, got `?`"),
    ("workload x=f32[4]!!!", "KL801", 34, "expected {values}, @(strides), ! or a blank, got `!`"),
    ("workload x=i32[4]", "KL801", 31,
     "expected values for an i32 tensor, such as {0..127} behind the sizes"),
    ("workload x=i32[4]{0-9}", "KL801", 33, f"expected {FORMS}, got `0-9`"),
    ("workload x=f32[4]{gaussian}", "KL801", 33,
     "expected normal, normal*S+M, uniform a..b, zeros or arange, got `gaussian`"),
    ("workload x=f32[4]{0..5}", "KL801", 33,
     "a..b draws integers; for f32 write uniform a..b"),
    ("workload x=i32[4]{normal}", "KL801", 33, "normal draws floats; for i32 write a..b"),
    ("workload x=i32[4]{uniform 0..1}", "KL801", 33, "uniform draws floats; for i32 write a..b"),
    ("workload x=u8[4]{0..256}", "KL801", 32, "256 does not fit u8 (0..255)"),
    ("workload x=i32[4]{9..0}", "KL801", 33, "expected the smaller bound first, got 9..0"),
    ("workload x=i32[4]{distinct 3}", "KL801", 33, "distinct 3 cannot fill 4 elements"),
    ("workload x=i32[1]{offsets 3}", "KL801", 33,
     "offsets need at least two elements: the first is 0, the last N"),
    ("workload x=b1[4]{1.5}", "KL801", 32, "expected a probability between 0 and 1, got 1.5"),
    ("workload x=f32[4]{0.5}", "KL801", 33,
     "a probability belongs to b1; for f32 write uniform a..b"),
    ("workload x=f32[4] x=f32[4]", "KL801", 33, "x is given twice"),
    ("workload x=f32[4] causal=maybe", "KL801", 40,
     "expected a Python literal or an expression over named extents, got `maybe`; "
     "no extent has a name; a string needs quotes"),
    ("workload x=f32[M:4] eps=K", "KL801", 39,
     "expected a Python literal or an expression over named extents, got `K`; "
     "named extents are M; a string needs quotes"),
    ("workload x=f32[4] eps=1+", "KL801", 39, "expected a Python expression: invalid syntax"),
    ("workload x=f32[4] eps='a", "KL801", 33, "expected a closing '"),
    ("workload x=f32[4] weight=-1", "KL801", 40,
     "expected a number that is not negative, got `-1`"),
    ("workload x=f32[4] block=4", "KL801", 33,
     "block= belongs to CUDA kernels; a Triton entry launches with its own grid. For a parameter "
     "of that name write block_="),
    ("workload x=f32[4] epsilon=1", "KL802", 33,
     f"no argument named epsilon: {TAKES}; did you mean eps"),
    ("workload eps=1", "KL802", 15, "no value for x: run has no default for it; add x=…"),
    ("reference", "KL801", 24, "expected a Python expression"),
    ("reference x +", "KL801", 28, "expected a Python expression: invalid syntax"),
    ("reference x + y", "KL802", 29, f"no argument named y: {TAKES}"),
    ("reference y=x", "KL802", 25,
     "no argument named y: run takes causal, eps, grid, w, weight, x"),
    ("tolerance 4", "KL801", 25, "expected k=NUMBER, got `4`"),
    ("tolerance k=much", "KL801", 27, "expected a positive number, got `much`"),
    ("allow everything", "KL801", 21, "expected lowers-precision or any-tie, got `everything`"),
    ("allow", "KL801", 20, "expected lowers-precision or any-tie"),
    ("inplace y", "KL802", 23,
     "no argument named y: run takes causal, eps, grid, w, weight, x"),
    ("inplace", "KL801", 22, "expected names of arguments"),
    ("grad x z", "KL802", 22,
     "no argument named z: run takes causal, eps, grid, w, weight, x"),
    ("setup if", "KL801", 23, "expected a Python statement: invalid syntax"),
    ("call", "KL801", 19, "expected a Python expression"),
    ("deterministic yes", "KL801", 29, "expected nothing after deterministic, got `yes`"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "code", "column", "message"), MISTAKES)
def test_a_mistake_is_named_with_its_column(
    line: str, code: str, column: int, message: str
) -> None:
    _, problems = read(line)
    assert [(p.code, p.message) for p in problems] == [(code, f"column {column}: {message}")]
    problem = problems[0]
    text = module_of(line).text.encode()
    line_start = text.rfind(b"\n", 0, problem.start) + 1
    assert problem.line == 12
    assert problem.start - line_start in (column - 1, column - 2)
    assert problem.end > problem.start


def test_one_mistake_hides_nothing_else() -> None:
    workload, problems = read(
        "workload x=f32[4]",
        "workload x=f31[4]",
        "reference q",
        "workload x=f32[8]",
        "tolerance k=3",
    )
    assert [case.arguments[0].name for case in workload.cases] == ["x", "x"]
    assert workload.tolerance_factor == 3.0
    assert [problem.line for problem in problems] == [13, 14]


def test_a_mistake_on_a_continued_line_is_placed_there() -> None:
    text = HEAD + "# kernel-lsp: workload x=f32[4] \\\n#    é='é' w=fp8[4]\n" + ENTRY
    text = text.replace("é='é'", "eps='é'")
    _, problems = parse_workloads(parse_module(text, "m.py"))
    assert [problem.line for problem in problems] == [13]
    found = text.encode()[problems[0].start : problems[0].end].decode()
    assert found == "fp8"
    assert problems[0].message.startswith("column 16: expected a dtype")


@pytest.mark.parametrize(
    "text",
    [
        HEAD + "# kernel-lsp: workload x=f32[4]\n\n" + ENTRY,
        HEAD + "@torch.no_grad()\n# kernel-lsp: workload x=f32[4]\n" + ENTRY,
        HEAD + "# kernel-lsp: workload x=f32[4]\ndef host(x):\n    return x\n\n\n" + ENTRY,
    ],
)
def test_a_misplaced_declaration_is_reported(text: str) -> None:
    workloads, problems = parse_workloads(parse_module(text, "m.py"))
    assert workloads == ()
    assert [problem.code for problem in problems] == ["KL802"]
    assert "put the declaration directly above such a function" in problems[0].message


def test_a_declaration_inside_a_string_is_text() -> None:
    text = 'NOTE = """\n# kernel-lsp: workload x=f32[4]\n"""\n' + HEAD + ENTRY
    assert parse_workloads(parse_module(text, "m.py")) == ((), ())


def test_recorded_workloads_and_bad_files(tmp_path: Path) -> None:
    recorded = good("workload x=f32[4]", "reference x")
    (tmp_path / "b.json").write_text(json.dumps(encode(recorded)))
    (tmp_path / "a.json").write_text("{not json")
    (tmp_path / "c.json").write_text("[]")
    (tmp_path / "d.json").write_text('{"entry": 3}')
    missing = tensor("x=i32[4]{0..3}")
    text = json.dumps(encode(recorded)).replace('"file": null', '"file": "gone.pt"')
    (tmp_path / "e.json").write_text(text)
    (tmp_path / "f.json").write_bytes(b"\xff\xfe")
    workloads, problems = load_recorded(tmp_path)
    assert workloads == (recorded,)
    assert [p.message.split(" ")[0] for p in problems] == [
        "a.json", "c.json", "d.json", "e.json", "f.json",
    ]  # fmt: skip
    assert "gone.pt" in problems[3].message
    assert missing.values.file is None
    assert load_recorded(tmp_path / "nowhere") == ((), ())


def test_a_first_declaration_parses() -> None:
    entry = (
        "def run(x: torch.Tensor, residual, weight, ids, cu_seqlens, eps: float = 1e-6, "
        "causal: bool = False, dtype: torch.dtype = None, *, size, mode: str):\n"
        "    B, H, T = x.shape\n    residual.stride(2); weight.numel()\n"
        "    ids.shape; cu_seqlens.dtype\n"
        "    kernel[(1,)](x, 4)\n"
    )
    module = module_of(entry=entry)
    text = declare(module, module.entries[0], None)
    assert text == (
        "# kernel-lsp: workload x=f32[8,1024,1024] residual=f32[8,1024,1024] weight=f32[4096] "
        "ids=i64[4096]{0..1023} cu_seqlens=i32[65]{offsets 4096} size=128 mode=''\n"
    )
    declared = parse_module(HEAD + text + entry, "m.py")
    workloads, problems = parse_workloads(declared)
    assert problems == ()
    assert len(workloads[0].cases) == 1


def test_a_declaration_written_from_a_workload_reads_back() -> None:
    workload = good(
        "workload x=bf16[M:8,N:4]{normal*0.5+1} w=i64[N]{sorted 0..9}@(2) eps=1e-5 grid_=3",
        "workload x=b1[3]{0.5}!! w=f32[2]{uniform -1..1} weight=f16[4] weight=0.5",
        "reference x=x + 1",
    )
    module = module_of()
    text = declare(module, module.entries[0], workload)
    again, problems = parse_workloads(parse_module(HEAD + text + ENTRY, "m.py"))
    assert problems == ()
    assert again[0].cases == workload.cases
    assert [r.expression for r in again[0].references] == ["x + 1"]


def test_a_declaration_takes_indentation_and_line_end() -> None:
    text = "class A:\n    @staticmethod\n    def run(x):\n        kernel[(1,)](x.T, 4)\n"
    module = parse_module((HEAD + text).replace("\n", "\r\n"), "m.py")
    assert declare(module, module.entries[0], None) == (
        "    # kernel-lsp: workload x=f32[4096,4096]\r\n"
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("# kernel-lsp: w", ("workload",)),
        ("# kernel-lsp: workload ", ("x=", "w=", "eps=", "causal=", "grid=", "weight=", "weight=")),
        ("# kernel-lsp: workload x=f32[4] e", ("eps=",)),
        ("# kernel-lsp: workload x=b", ("bf16[", "b1[")),
        ("# kernel-lsp: workload x=f32[M:4,", ("M", "1024", "2048", "4096", "8192", "16384")),
        ("# kernel-lsp: allow ", ("lowers-precision", "any-tie")),
        ("# kernel-lsp: reference torch.exp(x) + ca", ("causal",)),
        ("# nothing", ()),
        ("x = 1", ()),
    ],
)
def test_completions(line: str, expected: tuple[str, ...]) -> None:
    module = parse_module(f"{HEAD}{line}\n{ENTRY}", "m.py")
    assert completions(module, line, len(line)) == expected


def test_values_are_completed_inside_braces() -> None:
    module = module_of("workload x=i32[4]{sorted ")
    line = "# kernel-lsp: workload x=i32[4]{sorted "
    assert "permutation" in completions(module, line, len(line))


def unit(module: Module, name: str = "kernel") -> Unit:
    found = find_unit(module, name)
    assert found is not None
    return found


def refusal(text: str, name: str = "kernel") -> str | None:
    module = parse_module(text, "m.py")
    workloads, _ = parse_workloads(module)
    return workload_refusal(module, unit(module, name), workloads[0] if workloads else None)


def test_a_declared_unit_can_be_run() -> None:
    assert refusal(module_of("workload x=f32[4]").text) is None


def test_refusals_name_the_remedy() -> None:
    declared = HEAD + "# kernel-lsp: workload x=f32[4]\n" + ENTRY
    assert "write one above run" in (refusal(HEAD + ENTRY) or "")
    assert "write one above run" in (refusal(HEAD + "# kernel-lsp: workload y=1\n" + ENTRY) or "")
    assert "no function in this file launches it" in (refusal(HEAD) or "")

    again = declared + "\n\ndef test_run(x):\n    kernel[(2,)](x, 4)\n"
    assert "also launched in test_run (line 20)" in (refusal(again) or "")
    bare = declared + "\n\nkernel[(2,)](torch.zeros(1), 4)\n"
    assert "the module's top level" in (refusal(bare) or "")

    random = declared.replace("tl.store(p, n)", "tl.store(p, tl.rand(n, 0))")
    assert "kernel-lsp: deterministic" in (refusal(random) or "")
    said = random.replace("def run", "# kernel-lsp: deterministic\ndef run")
    assert refusal(said) is None

    method = HEAD + (
        "class Layer:\n    # kernel-lsp: workload x=f32[4]\n    def run(self, x):\n"
        "        kernel[(1,)](x, 4)\n"
    )
    assert "# kernel-lsp: call Layer().run(x)" in (refusal(method) or "")
    assert (
        refusal(method.replace("    def", "    # kernel-lsp: call Layer().run(x)\n    def")) is None
    )

    function = HEAD + (
        "class Fn(torch.autograd.Function):\n    # kernel-lsp: workload x=f32[4]\n"
        "    # kernel-lsp: call Fn.apply(x)\n    @staticmethod\n    def backward(ctx, g):\n"
        "        kernel[(1,)](g, 4)\n"
    )
    assert "# kernel-lsp: grad x" in (refusal(function) or "")
