"""What the compiler made of each line, for real kernels on NVIDIA and AMD, without a device."""

import asyncio
import sys
from pathlib import Path

import pytest

from search_engine.domain.code import (
    ArgumentKind,
    LaunchCode,
    MatrixPath,
    PipelinedLoop,
)
from search_engine.domain.code import MachineOperation as Op
from search_engine.domain.job import (
    AssumedArgument,
    AssumedLaunch,
    CompileJob,
    CompileReply,
    Completed,
    InspectJob,
    InspectReply,
    Lane,
    Refusal,
    RefusalKind,
    Source,
)
from search_engine.execution.local import LocalExecutor
from tests.search_engine.worker.versions import workload

pytest.importorskip("triton")

EXAMPLES = Path(__file__).parents[3] / "examples"
KINDS = '''\
"""One kernel for each thing that is told of a launch."""
import torch
import triton
import triton.language as tl


@triton.jit
def dot_kernel(a, b, c, n, B: tl.constexpr, P: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    j = tl.program_id(1) * B + tl.arange(0, B)
    k = tl.arange(0, 32)
    total = tl.zeros((B, B), dtype=tl.float32)
    for start in range(
        0,
        n,
        32,
    ):
        left = tl.load(a + i[:, None] * n + (start + k)[None, :])
        right = tl.load(b + (start + k)[:, None] * n + j[None, :])
        total = tl.dot(left, right, total, input_precision=P)
    tl.store(c + i[:, None] * n + j[None, :], total)


def precise(a, b, p):
    c = torch.empty_like(a)
    n = a.shape[0]
    dot_kernel[(n // 32, n // 32)](a, b, c, n, B=32, P=p)
    return c


@triton.jit
def kinds_kernel(x, y, n, width, one, nothing, scale, SPILL: tl.constexpr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    row = i // width
    v = tl.load(x + row * one, mask=i < n)
    w = tl.load(x + i, mask=i < n)
    wide = w.to(tl.float64) * 0.1
    if SPILL:
        for _ in range(n):
            w = tl.sqrt(w) + v * scale
    tl.store(y + i, v + w + wide.to(tl.float32), mask=i < n)


def kinds(x):
    y = torch.empty_like(x)
    for _ in range(2):
        kinds_kernel[
            lambda meta: (triton.cdiv(x.numel(), meta["B"]),)
        ](
            x, y, x.numel(), 100, 1, None, 0.5, SPILL=False, B=1024,
        )
    return y


def spilling(x):
    y = torch.empty_like(x)
    kinds_kernel[(1,)](
        x, y, x.numel(), 100, 1, None, 0.5, True, 4096, num_warps=1, maxnreg=64
    )
    return y


@triton.jit(do_not_specialize=["n"], do_not_specialize_on_alignment=["x"])
def turned_kernel(x, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    for step in range(n):
        tile = tl.load(x + step * B * B + i[:, None] * B + i[None, :])
        mean = row_mean(tile, B)
        tile = tl.trans(tile - mean[:, None])
        tl.store(y + step * B * B + i[:, None] * B + i[None, :], tile)


@triton.jit
def row_mean(tile, B: tl.constexpr):
    return tl.sum(tile, axis=1) / B


def turned(x):
    y = torch.empty_like(x)
    turned_kernel[(1,)](x, y, 16, B=64)
    return y


@triton.jit
def atomic_kernel(x, y, lock, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n)
    tl.atomic_add(y + i % 128, v, mask=i < n)
    tl.atomic_cas(lock, 0, 1)


def atomics(x):
    y = torch.empty_like(x)
    lock = torch.zeros(1, dtype=torch.int32, device=x.device)
    atomic_kernel[(8,)](x, y, lock, x.numel(), B=1024)
    return y
'''
JOBS = {
    "precise": ("a=f32[256,256] b=f32[256,256] p='ieee'", "precise"),
    "fast": ("a=f32[256,256] b=f32[256,256] p='tf32'", "precise"),
    "kinds": ("x=f32[65536]", "kinds"),
    "turned": ("x=f32[16,64,64]", "turned"),
    "atomics": ("x=f32[8192]", "atomics"),
    "spilling": ("x=f32[4096]", "spilling"),
}
ASSUMED = AssumedLaunch(
    "atomic_kernel",
    (
        AssumedArgument("x", "*fp32", divisible_by_16=True),
        AssumedArgument("y", "*fp32", divisible_by_16=True),
        AssumedArgument("lock", "*i32", divisible_by_16=True),
        AssumedArgument("n", "i32"),
        AssumedArgument("B", "constexpr", "1024"),
    ),
    (("num_warps", 4),),
    None,
    ("Assumed: B=1024.",),
)
WRONG = AssumedLaunch(
    "turned_kernel",
    (
        AssumedArgument("x", "*fp32"),
        AssumedArgument("y", "*fp32"),
        AssumedArgument("n", "i32"),
        AssumedArgument("B", "constexpr", "'text'"),
    ),
)


def line_of(part: str, text: str = KINDS) -> int:
    return next(i for i, line in enumerate(text.splitlines()) if part in line)


def source(root: Path, text: str, entry: str, module: str = "kinds") -> Source:
    return Source(entry, str(root), str(root / f"{module}.py"), module, text, entry)


def example_job(name: str, case: str, target: str) -> InspectJob:
    path = EXAMPLES / f"{name}.py"
    version = Source(name, str(EXAMPLES), str(path), name, path.read_text(), name)
    return InspectJob(version, workload(case), 0, target)


def inspected(root: Path, target: str, names: tuple[str, ...]) -> dict[str, object]:
    """Every job in one worker: starting one costs more than the compiling."""

    async def run() -> dict[str, object]:
        jobs = {
            name: InspectJob(source(root, KINDS, JOBS[name][1]), workload(JOBS[name][0]), 0, target)
            for name in names
        }
        jobs["softmax"] = example_job("softmax", "x=f32[512,8192]", target)
        jobs["matmul"] = example_job("matmul", "a=bf16[256,256] b=bf16[256,256]", target)
        kinds = source(root, KINDS, "kinds")
        jobs["listing"] = InspectJob(kinds, workload("x=f32[65536]"), 0, target, listing=True)
        jobs["assumed"] = InspectJob(kinds, None, 0, target, (ASSUMED, WRONG))
        jobs["facts"] = CompileJob(kinds, workload("x=f32[65536]"), 0, target)
        executor = LocalExecutor(
            sys.executable, root, scratch=root / "scratch", cache_folder=root / "cache"
        )
        replies: dict[str, object] = {}
        for name, job in jobs.items():
            result = await executor.run(job, Lane.COMPILE, 120)
            assert isinstance(result, Completed), result
            replies[name] = result.reply
        await executor.close()
        return replies

    return asyncio.run(run())


@pytest.fixture(scope="module")
def nvidia(tmp_path_factory) -> dict[str, object]:
    return inspected(tmp_path_factory.mktemp("nvidia"), "sm_90", tuple(JOBS))


@pytest.fixture(scope="module")
def amd(tmp_path_factory) -> dict[str, object]:
    return inspected(tmp_path_factory.mktemp("amd"), "gfx942", ("precise", "kinds", "turned"))


@pytest.fixture(params=["nvidia", "amd"])
def replies(request) -> dict[str, object]:
    return request.getfixturevalue(request.param)


def only(reply: object) -> LaunchCode:
    assert isinstance(reply, InspectReply), reply
    (code,) = reply.launches
    return code


def counted(code: LaunchCode, line: int, *operations: Op) -> int:
    return sum(item.count(*operations) for item in code.lines if item.line == line)


def widths(code: LaunchCode, line: int, operation: Op) -> set[int]:
    return {
        count.width_bytes
        for item in code.lines
        for count in item.counts
        if item.line == line and count.operation is operation
    }


def test_loads_of_the_example_softmax_stand_on_their_lines_in_their_loops(replies):
    text = (EXAMPLES / "softmax.py").read_text()
    code = only(replies["softmax"])
    loads = [i for i, line in enumerate(text.splitlines()) if "tl.load" in line]
    assert len(loads) == 3
    for line in loads:
        assert counted(code, line, Op.GLOBAL_LOAD) > 0
        assert widths(code, line, Op.GLOBAL_LOAD) <= {2, 4}  # one element a lane, 128 to a block
        depths = {item.loop_depth for item in code.lines
                  if item.line == line and item.count(Op.GLOBAL_LOAD)}  # fmt: skip
        assert 1 in depths
    store = line_of("tl.store", text)
    assert counted(code, store, Op.GLOBAL_STORE) > 0
    headers = [i for i, line in enumerate(text.splitlines()) if "for start" in line]
    assert [loop.line for loop in code.loops] == headers
    assert [loop.prefetched for loop in code.loops] == [0, 0, 0]
    assert code.dots == ()


def test_a_reduction_is_counted_on_the_line_that_calls_it(replies):
    text = (EXAMPLES / "softmax.py").read_text()
    code = only(replies["softmax"])
    for part in ("tl.max(x", "tl.sum(tl.exp"):
        assert counted(code, line_of(part, text), Op.SHUFFLE) > 0
        assert counted(code, line_of(part, text), Op.BARRIER) > 0
    assert counted(code, line_of("tl.sum(tl.exp", text), Op.SPECIAL) > 0


def test_code_of_a_helper_stands_on_the_helpers_line(replies):
    code = only(replies["turned"])
    assert counted(code, line_of("return tl.sum(tile"), Op.FP32) > 0


def test_the_example_matmul_runs_on_the_matrix_unit_and_prefetches(replies):
    text = (EXAMPLES / "matmul.py").read_text()
    code = only(replies["matmul"])
    (dot,) = code.dots
    assert dot.path is MatrixPath.TENSOR
    assert dot.line == line_of("tl.dot", text)
    assert (dot.operand_types, dot.accumulator_type) == (("bf16", "bf16"), "f32")
    assert (dot.tile, dot.precision, dot.loop_depth) == ((32, 32, 32), None, 1)
    in_loop = [item for item in code.lines if item.loop_depth == 1 and item.count(Op.MATRIX)]
    assert in_loop
    header = line_of("for start", text)
    stages = code.facts.stages
    assert code.loops == (PipelinedLoop(header, line_of("tl.dot", text), 2, 2, stages, True),)


def test_fp32_dots_by_their_precision(nvidia, amd):
    (precise,) = only(nvidia["precise"]).dots
    assert (precise.path, precise.precision) == (MatrixPath.FMA, "ieee")
    assert precise.operand_types == ("f32", "f32")
    (fast,) = only(nvidia["fast"]).dots
    assert (fast.path, fast.precision) == (MatrixPath.TENSOR, "tf32")
    (on_amd,) = only(amd["precise"]).dots
    assert (on_amd.path, on_amd.precision) == (MatrixPath.TENSOR, "ieee")


def test_a_loop_stands_on_its_first_line_though_its_header_has_five(replies):
    (loop,) = only(replies["precise"]).loops
    assert (loop.line, loop.end_line) == (line_of("for start in"), line_of("tl.dot(left"))


@pytest.mark.parametrize(("vendor", "lanes"), [("nvidia", 32), ("amd", 64)])
def test_fp64_and_integer_division_stand_on_their_lines(vendor, lanes, request):
    code = only(request.getfixturevalue(vendor)["kinds"])
    assert counted(code, line_of("* 0.1"), Op.FP64) > 0
    elements = 1024 // (lanes * code.facts.warps)
    assert counted(code, line_of("i // width"), Op.INTEGER_DIVISION) == elements
    divided = {item.line for item in code.lines if item.count(Op.INTEGER_DIVISION)}
    assert divided == {line_of("i // width")}
    assert not any(item.count(Op.SPILL_LOAD, Op.SPILL_STORE) for item in code.lines)


def test_spills_are_told_from_other_local_memory(nvidia):
    code = only(nvidia["spilling"])
    assert code.facts.spill_bytes > 0
    spilled = sum(item.count(Op.SPILL_LOAD, Op.SPILL_STORE) for item in code.lines)
    assert spilled > 0
    assert not any(item.count(Op.LOCAL_LOAD, Op.LOCAL_STORE) for item in code.lines)
    in_loop = [i for i in code.lines if i.loop_depth == 1 and i.line == line_of("tl.sqrt(w)")]
    assert sum(item.count(Op.SPILL_LOAD) for item in in_loop) > 0
    assert code.facts.spill_bytes == sum(
        count.width_bytes * count.count
        for item in code.lines
        for count in item.counts
        if count.operation in (Op.SPILL_LOAD, Op.SPILL_STORE)
    )


def test_a_transposed_store_converts_its_layout_in_the_loop(replies):
    (conversion,) = only(replies["turned"]).conversions
    assert conversion.line == line_of("tl.store(y + step")
    assert (conversion.bytes, conversion.loop_depth) == (64 * 64 * 4, 1)


def test_the_launch_line_is_the_users_and_equal_launches_are_one(replies):
    code = only(replies["kinds"])
    assert code.line == line_of("        kinds_kernel[")
    assert code.facts.grid == (64, 1, 1)
    assert not code.assumed


def test_arguments_are_what_the_compiler_was_told(replies):
    arguments = {item.name: item for item in only(replies["kinds"]).arguments}
    x, n, width = arguments["x"], arguments["n"], arguments["width"]
    assert (x.kind, x.dtype, x.divisible_by_16) == (ArgumentKind.POINTER, "*fp32", True)
    assert (n.kind, n.dtype, n.divisible_by_16, n.value) == (
        ArgumentKind.INTEGER, "i32", True, "65536",
    )  # fmt: skip
    assert (width.divisible_by_16, width.value) == (False, "100")
    assert (arguments["one"].kind, arguments["one"].value) == (ArgumentKind.CONSTANT, "1")
    assert (arguments["nothing"].kind, arguments["nothing"].value) == (
        ArgumentKind.CONSTANT, "None",
    )  # fmt: skip
    assert (arguments["scale"].kind, arguments["scale"].value) == (ArgumentKind.FLOAT, "0.5")
    assert arguments["B"].value == "1024"
    assert all(item.specialised for item in arguments.values())


def test_a_decorator_withholds_facts(replies):
    arguments = {item.name: item for item in only(replies["turned"]).arguments}
    assert (arguments["x"].specialised, arguments["x"].divisible_by_16) == (False, False)
    assert (arguments["n"].specialised, arguments["n"].value) == (False, "16")
    assert (arguments["y"].specialised, arguments["y"].divisible_by_16) == (True, True)


def test_an_atomic_of_the_users_is_no_replacement_for_another(nvidia):
    code = only(nvidia["atomics"])
    assert counted(code, line_of("tl.atomic_add"), Op.ATOMIC) > 0
    assert counted(code, line_of("tl.atomic_cas"), Op.ATOMIC) > 0
    assert not any(item.count(Op.ATOMIC_CAS) for item in code.lines)


def test_stage_times_are_told_for_a_fresh_compile(replies):
    stages = dict(only(replies["kinds"]).stage_seconds)
    assert {"ttir", "ttgir", "llir"} <= set(stages)
    assert all(0 <= seconds < 60 for seconds in stages.values())


def test_a_listing_has_a_line_for_every_row(replies):
    reply = replies["listing"]
    assert isinstance(reply, InspectReply)
    (listing,) = reply.listings
    rows = listing.text.split("\n")
    assert listing.kernel == "kinds_kernel"
    assert len(rows) == len(listing.lines)
    wanted = line_of("w = tl.load(x + i")
    assert any(
        ("LDG" in row or "buffer_load" in row or "global_load" in row) and line == wanted
        for row, line in zip(rows, listing.lines, strict=True)
    )
    assert not any("## File" in row or ".loc" in row for row in rows)


def test_facts_are_those_of_a_compile_job(replies):
    compiled = replies["facts"]
    assert isinstance(compiled, CompileReply)
    assert only(replies["kinds"]).facts == compiled.facts.launches[0]


def test_assumed_launches_are_compiled_and_failures_are_told(replies):
    reply = replies["assumed"]
    assert isinstance(reply, InspectReply)
    code = only(reply)
    assert (code.facts.kernel, code.assumed, code.line) == ("atomic_kernel", True, None)
    assert code.facts.grid == (0, 0, 0)
    assert "Assumed: B=1024." in code.notes
    assert {item.name: item.divisible_by_16 for item in code.arguments}["x"]
    assert counted(code, line_of("tl.atomic_add"), Op.ATOMIC) > 0
    ((kernel, refusal),) = reply.failures
    assert kernel == "turned_kernel"
    assert isinstance(refusal, Refusal)
    assert refusal.kind is RefusalKind.COMPILE
    assert refusal.line is not None
    assert line_of("def turned_kernel") < refusal.line < line_of("def row_mean")
