"""What is inferred about a launch that nobody declared, from the text alone."""

from __future__ import annotations

import pytest

from search_engine.domain.job import AssumedArgument, AssumedLaunch
from search_engine.frontends.assumed import assumed_launch
from search_engine.frontends.triton import parse_module

IMPORTS = "import torch\nimport triton\nimport triton.language as tl\n\n"


def reply(text: str, kernel: str = "kernel") -> AssumedLaunch | str:
    module = parse_module(IMPORTS + text, "m.py")
    unit = next(unit for unit in module.units if unit.kernel.name == kernel)
    return assumed_launch(module, unit)


def launch(text: str, kernel: str = "kernel") -> AssumedLaunch:
    found = reply(text, kernel)
    assert isinstance(found, AssumedLaunch), found
    return found


def arguments(text: str, kernel: str = "kernel") -> dict[str, AssumedArgument]:
    return {argument.name: argument for argument in launch(text, kernel).arguments}


SOFTMAX = """
@triton.jit
def kernel(out, x, n, stride, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    values = tl.load(x + row * stride + columns, mask=columns < n).to(tl.float32)
    values = tl.exp(values - tl.max(values, axis=0)) + eps
    tl.store(out + row * stride + columns, values / tl.sum(values, axis=0), mask=columns < n)

def softmax(x):
    out = torch.empty_like(x)
    kernel[(x.shape[0],)](
        out, x, x.shape[1], x.stride(0), 1e-6, BLOCK=triton.next_power_of_2(x.shape[1]), num_warps=8
    )
    return out
"""


def test_a_row_kernel_has_pointers_sizes_a_float_a_block_and_the_warps_of_its_launch():
    found = launch(SOFTMAX)
    assert [(a.name, a.dtype, a.value, a.divisible_by_16) for a in found.arguments] == [
        ("out", "*bf16", None, True),
        ("x", "*bf16", None, True),
        ("n", "i32", None, False),
        ("stride", "i32", None, False),
        ("eps", "fp32", None, False),
        ("BLOCK", "constexpr", "1024", False),
    ]
    assert found.options == (("num_warps", 8),)
    text = IMPORTS + SOFTMAX
    assert text.splitlines()[found.line or 0].strip().startswith("kernel[")
    assert "assumed BLOCK = 1024" in found.notes
    assert "assumed bf16 behind out, x" in found.notes
    assert "assumed n, stride not divisible by 16" in found.notes


def test_data_that_is_never_widened_is_taken_to_be_fp32():
    found = arguments(SOFTMAX.replace(".to(tl.float32)", ""))
    assert found["x"].dtype == "*fp32"


def test_index_mask_and_bit_tables_are_integers_and_truth_values():
    found = arguments("""
@triton.jit
def kernel(out, table, labels, keep, packed, values, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row = tl.load(table + i)
    label = tl.load(labels + i)
    kept = tl.load(keep + i)
    bits = (tl.load(packed + i) >> 4) & 15
    x = tl.load(values + row * n + label, mask=kept)
    tl.store(out + i, x * bits)
""")
    assert {
        name: found[name].dtype for name in ("table", "labels", "keep", "packed", "values")
    } == {
        "table": "*i32",
        "labels": "*i64",
        "keep": "*i1",
        "packed": "*i32",
        "values": "*fp32",
    }


def test_pointers_are_followed_through_assignments_branches_helpers_and_loops():
    found = arguments("""
@triton.jit
def fetch(base, offsets):
    return tl.load(base + offsets)

@triton.jit
def kernel(a, b, c, moving, n, FIRST: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    source = a if FIRST else b
    total = fetch(source, offsets)
    for _ in range(0, n, BLOCK):
        total += tl.load(moving + offsets)
        moving += BLOCK
    tl.store(c + offsets, total)
""")
    pointers = {name for name, argument in found.items() if argument.dtype.startswith("*")}
    assert pointers == {"a", "b", "c", "moving"}
    assert found["n"].dtype == "i32"
    assert found["FIRST"].value == "False"


def test_dot_operands_are_bf16_accumulated_statistics_and_atomics_fp32():
    found = arguments("""
@triton.jit
def kernel(a, b, c, lse, count, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
           GROUP_M: tl.constexpr, HAS_BIAS: tl.constexpr, ACTIVATION: tl.constexpr,
           out_dtype: tl.constexpr):
    m, n, k = tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N), tl.arange(0, BLOCK_K)
    pid = tl.program_id(0) // GROUP_M
    left = tl.load(a + pid + m[:, None] * 64 + k[None, :])
    right = tl.load(b + k[:, None] * 64 + n[None, :])
    total = tl.dot(left, right)
    if HAS_BIAS:
        total += 1.0
    if ACTIVATION == "relu":
        total = tl.maximum(total, 0.0)
    tl.store(c + m[:, None] * 64 + n[None, :], total.to(out_dtype))
    tl.store(lse + m, tl.max(total, 1))
    tl.atomic_add(count, tl.sum(tl.sum(total, 1), 0))
""")
    assert [found[name].dtype for name in ("a", "b", "c", "lse", "count")] == [
        "*bf16", "*bf16", "*bf16", "*fp32", "*fp32",
    ]  # fmt: skip
    assert {n: found[n].value for n in ("BLOCK_M", "BLOCK_N", "BLOCK_K", "GROUP_M")} == {
        "BLOCK_M": "64", "BLOCK_N": "64", "BLOCK_K": "32", "GROUP_M": "8",
    }  # fmt: skip
    assert found["HAS_BIAS"].value == "False"
    assert found["ACTIVATION"].value == "''"
    assert found["out_dtype"].value == "tl.float32"


MATMUL = """
def configurations():
    return [
        triton.Config({"BLOCK": block}, num_warps=warps, num_stages=5)
        for block in [32, 64] for warps in [2, 4]
    ]

@triton.autotune(configs=configurations(), key=["n"])
@triton.heuristics({
    "EVEN": lambda args: args["n"] % 16 == 0,
    "HALF": lambda args: args["BLOCK"] // 2,
    "HAS_BIAS": lambda args: args["bias"] is not None,
})
@triton.jit(do_not_specialize=["limit"])
def kernel(x, y, bias, n, limit, stride_xm, stride_xn, SCALE, BLOCK: tl.constexpr,
           EVEN: tl.constexpr, HALF: tl.constexpr, HAS_BIAS: tl.constexpr,
           WIDTH: tl.constexpr, MODE: tl.constexpr = "plain"):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.arange(0, WIDTH)
    places = rows[:, None] * stride_xm + columns[None, :] * stride_xn
    data = tl.load(x + places, mask=rows[:, None] < n)
    if HAS_BIAS:
        data += tl.load(bias + columns)[None, :]
    tl.store(y + rows[:, None] * limit + columns[None, :], data * SCALE)

WIDTH = 128

def entry(x: torch.Tensor, bias=None, scale: float = 1.0):
    y = torch.empty_like(x)
    kernel[lambda meta: (1,)](
        x, y, bias, 4096, 64, x.stride(0), x.stride(1), scale, WIDTH=WIDTH // 2
    )
    return y
"""


def test_values_come_from_configuration_heuristic_module_constant_and_default():
    found = arguments(MATMUL)
    assert (found["BLOCK"].value, found["BLOCK"].origin) == ("32", "from its first configuration")
    assert (found["EVEN"].value, found["EVEN"].origin) == ("True", "by its heuristic")
    assert (found["HALF"].value, found["HALF"].origin) == ("16", "by its heuristic")
    assert (found["WIDTH"].value, found["WIDTH"].origin) == ("64", "as launched")
    assert (found["MODE"].value, found["MODE"].origin) == ("'plain'", "its default")
    assert dict(launch(MATMUL).options) == {"num_warps": 2, "num_stages": 5}


def test_an_optional_tensor_is_left_out_together_with_its_flag():
    found = arguments(MATMUL)
    assert (found["bias"].dtype, found["bias"].value) == ("constexpr", "None")
    assert found["HAS_BIAS"].value == "False"


def test_a_tensor_that_every_call_passes_is_given_although_the_kernel_asks_for_it():
    required = MATMUL.replace("bias=None, scale", "bias: torch.Tensor, scale")
    found = arguments(required)
    assert found["bias"].dtype == "*fp32"
    assert found["HAS_BIAS"].value == "True"


def test_a_loop_that_is_unrolled_is_short():
    found = arguments("""
@triton.jit
def kernel(x, y, W: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for tap in tl.static_range(-W + 1, 1):
        total += tl.load(x + i + tap)
    tl.store(y + i, total)
""")
    assert found["W"].value == "4"
    assert found["BLOCK"].value == "1024"


def test_the_last_stride_of_a_tensor_is_one_and_other_sizes_are_as_the_launch_writes_them():
    found = arguments(MATMUL)
    assert (found["stride_xn"].dtype, found["stride_xn"].value) == ("constexpr", "1")
    assert (found["stride_xm"].dtype, found["stride_xm"].divisible_by_16) == ("i32", False)
    assert (found["n"].dtype, found["n"].divisible_by_16) == ("i32", True)
    assert found["SCALE"].dtype == "fp32"


def test_what_the_decorator_withholds_is_withheld():
    assert arguments(MATMUL)["limit"].divisible_by_16 is False


def test_a_row_stride_is_not_the_last_one_if_lanes_step_by_one_without_a_stride():
    found = arguments(
        SOFTMAX.replace("x.shape[1], x.stride(0), 1e-6", "x.shape[1], x.stride(1), 1e-6")
    )
    assert found["stride"].dtype == "i32"


def test_without_a_launch_everything_is_said_to_be_assumed():
    found = launch(SOFTMAX.partition("def softmax")[0])
    assert found.line is None
    assert found.notes[0] == "assumed every argument: nothing in this file launches the kernel"


def test_a_keyword_argument_and_positions_are_bound_to_the_right_parameters():
    found = arguments("""
@triton.jit
def kernel(a, b, n, scale, flag, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(b + i, tl.load(a + i, mask=i < n))

def entry(x):
    y = torch.zeros(4)
    kernel[(1,)](x.contiguous(), y, flag=True, n=1, scale=x.shape[0] ** -0.5, BLOCK=256)
""")
    assert found["n"].value == "1"
    assert found["scale"].dtype == "fp32"
    assert found["flag"].dtype == "i1"
    assert found["BLOCK"].value == "256"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "@triton.jit\ndef kernel(desc, x):\n    tl.store(x, desc.load([0, 0]))\n",
            "tensor descriptor",
        ),
        ("@triton.jit\ndef kernel(xs):\n    tl.store(xs[0], tl.load(xs[1]))\n", "a tuple"),
        ("@triton.jit\ndef kernel(x, *rest):\n    tl.store(x, 1)\n", "variable number"),
        (
            "@triton.jit\ndef put(p, v):\n    tl.store(p, v)\n\n"
            "@triton.jit\ndef kernel(x):\n    put(x, 1)\n",
            "a helper",
        ),
    ],
)
def test_a_reason_is_given_where_nothing_can_be_assumed(text: str, reason: str):
    found = reply(text, "put" if "def put" in text else "kernel")
    assert isinstance(found, str)
    assert reason in found


def test_broken_text_is_no_fault():
    broken = IMPORTS + SOFTMAX.replace("values / tl.sum(values, axis=0)", "values / tl.sum((")
    module = parse_module(broken, "m.py")
    for unit in module.units:
        assert isinstance(assumed_launch(module, unit), (str, AssumedLaunch))


def test_a_host_function_that_does_not_parse_leaves_the_kernel_readable():
    found = arguments(SOFTMAX.replace("return out\n", "return (out\n"))
    assert found["x"].dtype == "*bf16"
