"""Inferred launches compile as given or corrected, also where the user's module cannot be imported.

One worker compiles everything here.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from search_engine.domain.code import LaunchCode
from search_engine.domain.job import (
    AssumedArgument,
    AssumedLaunch,
    Completed,
    InspectJob,
    InspectReply,
    Lane,
    Source,
)
from search_engine.execution.local import LocalExecutor
from search_engine.frontends.assumed import assumed_launch
from search_engine.frontends.triton import parse_module
from search_engine.source import make_source

pytest.importorskip("triton")

IMPORTS = "import torch\nimport triton\nimport triton.language as tl\n\n"

SCALE = (
    IMPORTS
    + """
@triton.jit
def scale_kernel(x, y, n, stride_x, stride_y, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i * stride_y, tl.load(x + i * stride_x, mask=i < n) * 2, mask=i < n)
"""
)
PACKED = (
    IMPORTS
    + """
def outer_helper(x):
    return x

@triton.jit
def unpack(word, SHIFT: tl.constexpr):
    return (word >> SHIFT) & 15

@triton.jit
def packed_kernel(words, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + i, unpack(tl.load(words + i), 4))
"""
)
MODES = (
    IMPORTS
    + """
@triton.jit
def modes_kernel(x, y, MODE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    if MODE == 7:
        value = tl.load(x + i)
    elif MODE == 9:
        value = tl.load(x + i) * 2
    tl.store(y + i, value)
"""
)
LARGE = (
    IMPORTS
    + """
@triton.jit
def large_kernel(a, b, c, n, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    m, k, j = tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_K), tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, n, BLOCK_K):
        left = tl.load(a + m[:, None] * 4096 + (start + k)[None, :])
        right = tl.load(b + (start + k)[:, None] * 4096 + j[None, :])
        total += tl.dot(left, right)
    tl.store(c + m[:, None] * n + j[None, :], total)
"""
)
UNIMPORTABLE = '''\
"""A module of a larger package whose import fails."""
import no_such_module_anywhere
import torch
import triton
import triton.language as tl
from no_such_module_anywhere import tl as other_tl

from .shared import LIMIT, twice

SCRATCH = torch.zeros(1, device="no-such-device")
ROWS = 4 * LIMIT.value
WIDTH: tl.constexpr = tl.constexpr(ROWS // 4)

if no_such_module_anywhere.FAST:
    STEP = tl.constexpr(2)
else:
    STEP = tl.constexpr(3)


def wrapped(**options):
    return no_such_module_anywhere.decorate(options)


@wrapped(reason="not to be executed")
@triton.autotune(configs=no_such_module_anywhere.configs(), key=["n"])
@triton.jit(do_not_specialize=["n"])
def outside_kernel(x, y, n, BLOCK: tl.constexpr):
    i = other_tl.arange(0, BLOCK) * STEP
    value = tl.load(x + i, mask=i < n)
    tl.store(y + i, twice(value) + WIDTH, mask=i < n)
'''
SHARED = """\
import enum

import no_such_module_anywhere
import triton
import triton.language as tl


class Limits(enum.Enum):
    SMALL = 16


LIMIT = Limits.SMALL


@triton.jit
def twice(value):
    return value * factor()


@triton.jit
def factor():
    return 2
"""
FACTORY = (
    IMPORTS
    + """
def make(width=32):
    @triton.jit
    def inner_kernel(x, y, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(y + i, tl.load(x + i) + LENGTH)

    LENGTH = tl.constexpr(2 * width)
    return inner_kernel

raise RuntimeError("the module is not meant to be imported")
"""
)


def argument(name: str, dtype: str, value: str | None = None) -> AssumedArgument:
    return AssumedArgument(name, dtype, value, dtype.startswith("*"))


def constants(**values: object) -> tuple[AssumedArgument, ...]:
    return tuple(argument(name, "constexpr", str(value)) for name, value in values.items())


def pointers(**types: str) -> tuple[AssumedArgument, ...]:
    return tuple(argument(name, f"*{element}") for name, element in types.items())


MATRICES = (*pointers(a="bf16", b="bf16", c="bf16"), argument("n", "i32"))
TILES = constants(BLOCK_M=64, BLOCK_N=64, BLOCK_K=64)
SCALED = (*pointers(x="fp32", y="fp32"), argument("n", "i32"))
STRIDED = (argument("stride_x", "constexpr", "1"), argument("stride_y", "i32"))
LAUNCHES: dict[str, tuple[str, AssumedLaunch]] = {
    "as given": (
        SCALE,
        AssumedLaunch("scale_kernel", (*SCALED, *STRIDED, *constants(BLOCK=512)),
                      (("num_warps", 2),), notes=("assumed BLOCK = 512",)),
    ),
    "unknown option": (
        SCALE,
        AssumedLaunch("scale_kernel", (*SCALED, *STRIDED, *constants(BLOCK=512)),
                      (("num_wraps", 2),)),
    ),
    "option of another vendor": (
        SCALE,
        AssumedLaunch("scale_kernel", (*SCALED, *STRIDED, *constants(BLOCK=512)),
                      (("waves_per_eu", 2),)),
    ),
    "other parameters": (SCALE, AssumedLaunch("scale_kernel", SCALED)),
    "no such kernel": (SCALE, AssumedLaunch("missing_kernel", SCALED)),
    "number for an address": (
        SCALE,
        AssumedLaunch("scale_kernel", (argument("x", "i32"), *pointers(y="fp32"),
                                       argument("n", "i32"), *STRIDED, *constants(BLOCK=512))),
    ),
    "floats for words": (
        PACKED,
        AssumedLaunch("packed_kernel", (*pointers(words="bf16", y="bf16"), *constants(BLOCK=64))),
    ),
    "no mode": (
        MODES,
        AssumedLaunch("modes_kernel", (*pointers(x="fp32", y="fp32"),
                                       *constants(MODE=0, BLOCK=64))),
    ),
    "no power of two": (
        MODES,
        AssumedLaunch("modes_kernel", (*pointers(x="fp32", y="fp32"),
                                       *constants(MODE=7, BLOCK=48))),
    ),
    "written wrong": (
        MODES,
        AssumedLaunch("modes_kernel", (
            *pointers(x="fp32", y="fp32"), *constants(MODE=7),
            AssumedArgument("BLOCK", "constexpr", "48", origin="written at the launch"),
        )),
    ),
    "too many stages": (
        LARGE,
        AssumedLaunch("large_kernel", (*MATRICES, *TILES), (("num_stages", 20),),
                      notes=("assumed num_stages = 20, from its first configuration",)),
    ),
    "unimportable": (
        UNIMPORTABLE,
        AssumedLaunch("outside_kernel", (*SCALED, *constants(BLOCK=64))),
    ),
    "in a function": (
        FACTORY,
        AssumedLaunch("make.inner_kernel", (*pointers(x="fp32", y="fp32"), *constants(BLOCK=64))),
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def replies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, InspectReply]:
    root = tmp_path_factory.mktemp("assumed")
    package = root / "package"
    package.mkdir()
    (package / "__init__.py").write_text("import no_such_module_anywhere\n")
    (package / "shared.py").write_text(SHARED)

    def source(name: str, text: str) -> Source:
        folder = package if text == UNIMPORTABLE else root
        path = folder / f"{name.replace(' ', '_')}.py"
        path.write_text(text)
        return make_source(name, path, text, "")

    async def all_replies() -> dict[str, InspectReply]:
        executor = LocalExecutor(sys.executable, root, scratch=root / "scratch")
        found: dict[str, InspectReply] = {}
        try:
            for name, (text, launch) in LAUNCHES.items():
                job = InspectJob(source(name, text), None, 0, "sm_90", (launch,))
                result = await executor.run(job, Lane.COMPILE, 120)
                assert isinstance(result, Completed), result
                assert isinstance(result.reply, InspectReply), result.reply
                found[name] = result.reply
        finally:
            await executor.close()
        return found

    return asyncio.run(all_replies())


def compiled(replies: dict[str, InspectReply], name: str) -> LaunchCode:
    assert not replies[name].failures
    (code,) = replies[name].launches
    return code


def refusal(replies: dict[str, InspectReply], name: str) -> str:
    ((kernel, refused),) = replies[name].failures
    assert not replies[name].launches
    assert kernel == LAUNCHES[name][1].kernel
    return refused.message


def described(code: LaunchCode) -> dict[str, tuple[str, str | None, bool]]:
    return {a.name: (a.dtype, a.value, a.divisible_by_16) for a in code.arguments}


def test_a_launch_is_compiled_with_its_types_alignment_constants_and_options(
    replies: dict[str, InspectReply],
):
    code = compiled(replies, "as given")
    told = described(code)
    assert code.assumed
    assert code.facts.warps == 2
    assert told["x"] == ("*fp32", None, True)
    assert told["n"][0] == "i32"
    assert told["n"][2] is False
    assert told["stride_x"][1] == "1"
    assert told["BLOCK"][1] == "512"
    assert code.notes == ("assumed BLOCK = 512",)


def test_options_that_triton_would_ignore_are_refused(replies: dict[str, InspectReply]):
    assert "no launch option `num_wraps`" in refusal(replies, "unknown option")


def test_an_option_for_another_vendor_is_left_out(replies: dict[str, InspectReply]):
    assert compiled(replies, "option of another vendor").facts.warps == 4


def test_a_launch_of_another_signature_or_kernel_is_refused(replies: dict[str, InspectReply]):
    assert "parameters of `scale_kernel`" in refusal(replies, "other parameters")
    assert "missing_kernel" in refusal(replies, "no such kernel")


def test_a_number_where_an_address_is_needed_becomes_a_pointer(replies: dict[str, InspectReply]):
    code = compiled(replies, "number for an address")
    assert described(code)["x"] == ("*fp32", None, True)
    assert "assumed fp32 behind x, y" in code.notes


def test_floats_that_are_shifted_in_a_helper_become_integers(replies: dict[str, InspectReply]):
    told = described(compiled(replies, "floats for words"))
    assert told["words"][0] == "*i32"
    assert told["y"][0] == "*bf16"


def test_a_name_that_no_branch_assigns_takes_the_first_mode(replies: dict[str, InspectReply]):
    code = compiled(replies, "no mode")
    assert described(code)["MODE"][1] == "7"
    assert any(note.startswith("assumed MODE = 7, corrected") for note in code.notes)


def test_a_guessed_length_is_rounded_and_one_that_is_written_is_not(
    replies: dict[str, InspectReply],
):
    assert described(compiled(replies, "no power of two"))["BLOCK"][1] == "64"
    assert "power of 2" in refusal(replies, "written wrong")


def test_a_launch_that_needs_more_than_the_card_has_is_made_smaller(
    replies: dict[str, InspectReply],
):
    code = compiled(replies, "too many stages")
    assert code.facts.stages == 2
    assert "assumed num_stages = 2, corrected because the first guess does not compile" in (
        code.notes
    )
    assert not any("num_stages = 20" in note for note in code.notes)


def test_a_kernel_is_cut_out_of_a_module_that_cannot_be_imported(
    replies: dict[str, InspectReply],
):
    code = compiled(replies, "unimportable")
    assert any("no_such_module_anywhere" in note for note in code.notes)
    lines = UNIMPORTABLE.splitlines()
    seen = {lines[line.line].strip() for line in code.lines if line.line is not None}
    assert any(line.startswith("value = tl.load") for line in seen)
    assert any(line.startswith("tl.store") for line in seen)


def test_a_kernel_inside_a_function_sees_what_it_captures(replies: dict[str, InspectReply]):
    code = compiled(replies, "in a function")
    assert any("not meant to be imported" in note for note in code.notes)


def test_what_the_front_end_infers_compiles_for_every_vendor(tmp_path: Path):
    path = tmp_path / "scale.py"
    path.write_text(SCALE)
    module = parse_module(SCALE, str(path))
    launch = assumed_launch(module, module.units[0])
    assert isinstance(launch, AssumedLaunch)

    async def on(target: str) -> object:
        executor = LocalExecutor(sys.executable, tmp_path, scratch=tmp_path / target)
        try:
            job = InspectJob(make_source("s", path, SCALE, ""), None, 0, target, (launch,))
            return await executor.run(job, Lane.COMPILE, 120)
        finally:
            await executor.close()

    result = asyncio.run(on("gfx942"))
    assert isinstance(result, Completed)
    assert isinstance(result.reply, InspectReply)
    assert result.reply.launches[0].assumed
