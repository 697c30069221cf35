"""Constants fed by what changes from call to call are named; typical constants are not."""

from __future__ import annotations

import pytest
from launch_subjects import HEADER, make_subject, run

from search_engine.domain.finding import Finding
from search_engine.findings.recompile_trigger import RecompileTrigger


def kernel(body: str, entry: str, parameters: str = "N: tl.constexpr") -> str:
    return (
        f"{HEADER}@triton.jit\ndef scale(x_ptr, out_ptr, {parameters}, BLOCK: tl.constexpr):\n"
        "    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
        f"{body}"
        "    x = tl.load(x_ptr + offsets)\n    tl.store(out_ptr + offsets, x * 2)\n\n\n"
        f"{entry}"
    )


MASK = "    tl.device_assert(offsets < N)\n"
ARANGE = "    cols = tl.arange(0, N)\n"
HELPER = "    cols = other(N)\n"


def entry(value: str, before: str = "") -> str:
    lines = f"    {before}\n" if before else ""
    return f"def run(x, w, out):\n{lines}    scale[(64,)](x, out, N={value}, BLOCK=256)\n"


def found(body: str, host: str) -> list[Finding]:
    return run(RecompileTrigger(), make_subject(kernel(body, host)))


def messages(value: str, before: str = "", body: str = MASK) -> list[str]:
    return [item.message for item in found(body, entry(value, before))]


@pytest.mark.parametrize(
    ("value", "before", "origin"),
    [
        ("x.shape[0]", "", "x.shape[0]"),
        ("x.size(0)", "", "x.size(0)"),
        ("x.numel()", "", "x.numel()"),
        ("len(x)", "", "len(x)"),
        ("n_rows", "n_rows, n_cols = x.shape", "x.shape[0]"),
        ("tokens * 2", "tokens = x.shape[0]", "x.shape[0]"),
        ("triton.cdiv(x.shape[0], 32)", "", "triton.cdiv(x.shape[0], 32)"),
        ("rows", "rows = x.shape[0] // 8", "x.shape[0] // 8"),
        ("S", "B, H, S, D = x.shape", "x.shape[2]"),
        ("seq_len", "_, seq_len, _ = x.shape", "x.shape[1]"),
        ("x.stride(0)", "B, H, S, D = x.shape", "x.stride(0)"),
        ("q.stride(0)", "q = x[:]\n    last = q.stride(3)", "q.stride(0)"),
        ("pages.stride(0)", "pages = torch.empty((4, x.shape[0]))", "pages.stride(0)"),
        ("page_table.stride(0)", "page_table = x[:, 1:]", "page_table.stride(0)"),
        ("x.numel() // x.shape[-1]", "", "x.numel() // x.shape[-1]"),
    ],
)
def test_what_changes_from_call_to_call_is_named(value: str, before: str, origin: str) -> None:
    assert messages(value, before) == [f"N is constexpr: a compile for each value of {origin}"]


@pytest.mark.parametrize(
    ("value", "before"),
    [
        ("1024", ""),
        ("x.shape[-1]", ""),
        ("x.shape[1]", ""),
        ("n_cols", "n_rows, n_cols = x.shape"),
        ("D", "B, H, S, D = x.shape"),
        ("heads", "heads = x.shape[0]"),
        ("w.shape[0]", ""),
        ("weight.numel()", "weight = w.float()"),
        ("x.stride(0)", ""),
        ("x.stride(1)", "B, S, D = x.shape"),
        ("x.stride(-1)", ""),
        ("x.stride(0)", "last = x.stride(3)"),
        ("k_cache.stride(0)", "a, b, c, d = k_cache.shape"),
        ("triton.next_power_of_2(x.shape[0])", ""),
        ("min(x.shape[0], 64)", ""),
        ("x.shape[0] % 16 == 0", ""),
        ("x.shape[0] > 1", ""),
        ("x.numel() // x.shape[0]", ""),
        ("len(x.shape)", ""),
        ("self.rows", ""),
        ("L", "B, H, S, L = x.shape"),
        ("triton.cdiv(x.shape[0], 2048 * 32)", ""),
        ("lookup_table.numel()", "lookup_table = w.float()"),
        ("n", "n = 4\n    n = x.shape[0]"),
    ],
)
def test_what_a_model_or_configuration_fixes_is_silent(value: str, before: str) -> None:
    assert messages(value, before) == []


@pytest.mark.parametrize("body", [ARANGE, HELPER, "    half: tl.constexpr = N // 2\n"])
def test_a_value_that_the_kernel_needs_at_compile_time_is_silent(body: str) -> None:
    assert messages("x.shape[0]", body=body) == []


@pytest.mark.parametrize(
    "body",
    [
        "    for i in range(N):\n        offsets += 1\n",
        "    last = N - 1\n    offsets = tl.minimum(offsets, last)\n",
        "    if N > 16:\n        offsets += 1\n",
    ],
)
def test_bounds_addresses_and_branches_need_no_constant(body: str) -> None:
    assert len(messages("x.shape[0]", body=body)) == 1


def test_a_helper_is_asked_what_it_does_with_the_value() -> None:
    helper = "@triton.jit\ndef wrap(offsets, limit):\n    return offsets % limit\n\n\n"
    sized = "@triton.jit\ndef wrap(offsets, limit):\n    return tl.arange(0, limit)\n\n\n"
    text = kernel("    offsets = wrap(offsets, N)\n", entry("x.shape[0]"))
    assert len(run(RecompileTrigger(), make_subject(text.replace(HEADER, HEADER + helper)))) == 1
    assert run(RecompileTrigger(), make_subject(text.replace(HEADER, HEADER + sized))) == []


def test_a_seed_that_the_host_gets_is_named() -> None:
    host = "def run(x, out, seed):\n    scale[(64,)](x, out, N=seed, BLOCK=256)\n"
    assert [item.message for item in found(MASK, host)] == [
        "N is constexpr: a compile for each value of seed"
    ]


def test_a_switch_is_no_count() -> None:
    for parameter in ("return_token_counts", "tokens: bool", "rows=False"):
        name = parameter.split(":")[0].split("=")[0]
        host = f"def run(x, out, {parameter}):\n    scale[(64,)](x, out, N={name}, BLOCK=256)\n"
        assert found(MASK, host) == []


def test_a_plain_argument_is_silent() -> None:
    text = kernel(MASK, entry("x.shape[0]"), parameters="N")
    assert run(RecompileTrigger(), make_subject(text)) == []


def test_positional_arguments_are_read_and_hidden_ones_are_not() -> None:
    host = "def run(x, out):\n    scale[(64,)](x, out, x.shape[0], BLOCK=256)\n"
    (one,) = found(MASK, host)
    text = kernel(MASK, host)
    assert text[one.start : one.end] == "x.shape[0]"
    declared = one.related[0]
    assert text[declared.start : declared.end] == "N: tl.constexpr"
    hidden = "def run(x, *args):\n    scale[(64,)](*args, x.shape[0], BLOCK=256)\n"
    assert found(MASK, hidden) == []


def test_the_workload_says_how_many_compilations_there_are() -> None:
    host = (
        "# kernel-lsp: workload x=f32[64,128]\n# kernel-lsp: workload x=f32[96,128]\n"
        "# kernel-lsp: workload x=f32[64,256]\n"
        "def run(x):\n    out = torch.empty_like(x)\n"
        "    scale[(64,)](x, out, N=x.shape[0], BLOCK=256)\n    return out\n"
    )
    (one,) = found(MASK, host)
    assert one.message.endswith("a compile for each value of x.shape[0] (2 in this workload)")
    assert one.facts["compiles"] == 2


def test_a_block_pointer_takes_its_shape_at_run_time_but_not_its_block() -> None:
    shape = "    p = tl.make_block_ptr(x_ptr, (N,), (1,), (0,), (64,), (0,))\n"
    block = "    p = tl.make_block_ptr(x_ptr, (64,), (1,), (0,), block_shape=(N,), order=(0,))\n"
    assert len(messages("x.shape[0]", body=shape)) == 1
    assert messages("x.shape[0]", body=block) == []
