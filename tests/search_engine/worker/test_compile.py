"""Unmodified entries compile for NVIDIA and AMD without a device, and say what went wrong where."""

import asyncio
import sys
from pathlib import Path

import pytest

from search_engine.domain.job import (
    CompileJob,
    CompileReply,
    Completed,
    Lane,
    Refusal,
    RefusalKind,
    Source,
)
from search_engine.domain.workload import (
    Case,
    Distribution,
    Extent,
    ScalarArgument,
    TensorArgument,
    Values,
    Workload,
    WorkloadSource,
)
from search_engine.execution.local import LocalExecutor

pytest.importorskip("triton")

SOFTMAX = '''\
"""The usual softmax, with what people write around it."""
import torch
import triton
import triton.language as tl

DEVICE = torch.device("cuda")
SCRATCH = torch.zeros(16, device=DEVICE)


@triton.jit
def softmax_kernel(x, y, n, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < n
    values = tl.load(x + row * stride + columns, mask=mask, other=-float("inf"))
    values = values - tl.max(values, axis=0)
    numerator = tl.exp(values)
    tl.store(y + row * stride + columns, numerator / tl.sum(numerator, axis=0), mask=mask)


def softmax(x, repeat: int = 1):
    """Rows of x."""
    assert x.is_cuda and x.device.type == "cuda" and x.device == SCRATCH.device
    assert torch.cuda.get_device_properties(x.device).multi_processor_count > 100
    y = torch.empty_like(x)
    with torch.cuda.device(x.device):
        for _ in range(repeat):
            softmax_kernel[lambda meta: (triton.cdiv(x.shape[0], 1),)](
                x, y, x.shape[1], x.stride(0), BLOCK=triton.next_power_of_2(x.shape[1]), num_warps=8
            )
    torch.cuda.synchronize()
    return y
'''
MATMUL = """\
import torch, triton, triton.language as tl

@triton.autotune(
    [triton.Config({"B": 64}, num_warps=4, num_stages=4), triton.Config({"B": 128}, num_warps=8)],
    key=["n"], reset_to_zero=["c"],
)
@triton.jit
def matmul_kernel(a, b, c, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    j = tl.program_id(1) * B + tl.arange(0, B)
    k = tl.arange(0, 64)
    total = tl.zeros((B, B), dtype=tl.float32)
    for start in range(0, n, 64):
        left = tl.load(a + i[:, None] * n + (start + k)[None, :])
        right = tl.load(b + (start + k)[:, None] * n + j[None, :])
        total = tl.dot(left, right, total)
    tl.store(c + i[:, None] * n + j[None, :], total.to(tl.float16))

def matmul(a, b):
    c = torch.empty_like(a)
    n = a.shape[0]
    matmul_kernel[lambda meta: (triton.cdiv(n, meta["B"]), triton.cdiv(n, meta["B"]))](a, b, c, n)
    return c
"""
PERSISTENT = SOFTMAX.replace(
    "        for _ in range(repeat):\n"
    "            softmax_kernel[lambda meta: (triton.cdiv(x.shape[0], 1),)](\n"
    "                x, y, x.shape[1], x.stride(0), BLOCK=triton.next_power_of_2(x.shape[1]), "
    "num_warps=8\n"
    "            )\n",
    "        arguments = (x, y, x.shape[1], x.stride(0), triton.next_power_of_2(x.shape[1]))\n"
    "        kernel = softmax_kernel.warmup(*arguments, num_warps=8, grid=(1,))\n"
    "        kernel._init_handles()\n"
    "        fitting = 65536 // (kernel.n_regs * 256)\n"
    "        kernel[(fitting * 7, 1, 1)](*arguments)\n",
)
READS = SOFTMAX.replace("    y = torch.empty_like(x)\n", "    y = torch.empty_like(x)\n"
                        "    assert x.sum().item() == 0\n    y = y[:, :].to('cuda')\n")  # fmt: skip

VERSIONS = {
    "softmax": SOFTMAX,
    "moved": "# one line more\n" + SOFTMAX,
    "typo": SOFTMAX.replace("tl.exp(values)", "tl.exponent(values)"),
    "argument": SOFTMAX.replace("x, y, x.shape[1], x.stride(0)", "x, y, x.shape[1]"),
    "reads": READS,
    "persistent": PERSISTENT,
    "raises": SOFTMAX.replace("    torch.cuda.synchronize()", "    y.no_such_method()"),
    "none": SOFTMAX.replace("range(repeat)", "range(0)"),
    "syntax": SOFTMAX + "def broken(:\n",
    "missing": SOFTMAX.replace("import torch\n", "import torch, no_such_module\n"),
}  # fmt: skip


def tensor(name: str, dtype: str, *shape: int) -> TensorArgument:
    extents = tuple(Extent(size) for size in shape)
    return TensorArgument(name, dtype, extents, Values(Distribution.NORMAL))


def softmax_workload(columns: int = 4096) -> Workload:
    case = Case((tensor("x", "f32", 512, columns), ScalarArgument("repeat", "1 + 1")))
    return Workload("softmax", WorkloadSource.DECLARED, (case,))


def matmul_workload() -> Workload:
    case = Case((tensor("a", "f16", 1024, 1024), tensor("b", "f16", 1024, 1024)))
    return Workload("matmul", WorkloadSource.DECLARED, (case,))


def run_all(root: Path, target: str) -> dict[str, CompileReply | Refusal]:
    """All versions in one worker: starting one costs more than the compiling."""

    async def run() -> dict[str, CompileReply | Refusal]:
        executor = LocalExecutor(
            sys.executable, root, scratch=root / "scratch", cache_folder=root / "cache"
        )
        jobs = {name: (text, softmax_workload(), "softmax") for name, text in VERSIONS.items()}
        jobs["odd"] = (SOFTMAX, softmax_workload(4093), "softmax")
        jobs["matmul"] = (MATMUL, matmul_workload(), "matmul")
        deep = MATMUL.replace('"B": 64}, num_warps=4, num_stages=4', '"B": 128}, num_stages=9')
        jobs["shared"] = (deep, matmul_workload(), "matmul")
        jobs["again"] = jobs["softmax"]
        replies: dict[str, CompileReply | Refusal] = {}
        for name, (text, workload, entry) in jobs.items():
            source = Source(name, str(root), str(root / "kernels.py"), "kernels", text, entry)
            job = CompileJob(source, workload, 0, target)
            result = await executor.run(job, Lane.COMPILE, 120)
            assert isinstance(result, Completed), result
            assert isinstance(result.reply, (CompileReply, Refusal))
            replies[name] = result.reply
        await executor.close()
        return replies

    return asyncio.run(run())


@pytest.fixture(scope="module")
def nvidia(tmp_path_factory) -> dict[str, CompileReply | Refusal]:
    return run_all(tmp_path_factory.mktemp("nvidia"), "sm_90")


@pytest.fixture(scope="module")
def amd(tmp_path_factory) -> dict[str, CompileReply | Refusal]:
    return run_all(tmp_path_factory.mktemp("amd"), "gfx942")


@pytest.fixture(params=["nvidia", "amd"])
def replies(request) -> dict[str, CompileReply | Refusal]:
    return request.getfixturevalue(request.param)


def launches(reply: CompileReply | Refusal):
    assert isinstance(reply, CompileReply), reply
    return reply.facts.launches


def refused(reply: CompileReply | Refusal) -> Refusal:
    assert isinstance(reply, Refusal), reply
    return reply


def test_every_launch_is_reported_as_it_was_made(replies):
    made = launches(replies["softmax"])
    assert len(made) == 2
    facts = made[0]
    assert (facts.kernel, facts.grid, facts.warps) == ("softmax_kernel", (512, 1, 1), 8)
    assert facts.constants == (("BLOCK", "4096"),)
    assert 10 < facts.registers <= 255
    assert facts.spill_bytes == 0
    assert facts.tensor_instructions == 0
    assert 100 < facts.instructions < 2000
    assert facts.widest_load_bytes == 16


def test_an_odd_row_length_narrows_the_loads(replies):
    (facts, _) = launches(replies["odd"])
    assert facts.constants == (("BLOCK", "4096"),)
    assert facts.widest_load_bytes == 4


def test_the_hash_ignores_lines_and_sees_code(replies):
    plain, moved, odd = (launches(replies[name])[0] for name in ("softmax", "moved", "odd"))
    assert plain.binary_hash == moved.binary_hash
    assert plain.binary_hash != odd.binary_hash
    assert launches(replies["again"])[0] == plain


def test_an_autotuned_kernel_takes_its_first_configuration(replies):
    (facts,) = launches(replies["matmul"])
    assert facts.constants == (("B", "64"),)
    assert (facts.grid, facts.warps, facts.stages) == ((16, 16, 1), 4, 4)
    assert facts.tensor_instructions > 0
    assert facts.shared_bytes >= 64 * 64 * 2


def test_an_entry_may_size_its_grid_by_the_registers_of_a_warmed_up_kernel(replies):
    (facts,) = launches(replies["persistent"])
    assert facts.grid == (65536 // (facts.registers * 256) * 7, 1, 1)


def test_an_entry_that_reads_values_compiles_on_host_tensors(replies):
    assert launches(replies["reads"])[0] == launches(replies["softmax"])[0]


def line_of(text: str, part: str) -> int:
    return next(i for i, line in enumerate(text.splitlines()) if part in line)


def test_compile_errors_carry_the_line_and_the_compilers_words(replies):
    typo = refused(replies["typo"])
    assert typo.kind is RefusalKind.COMPILE
    assert typo.line == line_of(VERSIONS["typo"], "tl.exponent")
    assert "exponent" in typo.message
    argument = refused(replies["argument"])
    assert argument.kind is RefusalKind.COMPILE
    assert "stride" in argument.message
    syntax = refused(replies["syntax"])
    assert syntax.line == line_of(VERSIONS["syntax"], "def broken")


def test_what_the_entry_raises_is_not_a_compile_error(replies):
    refusal = refused(replies["raises"])
    assert refusal.kind is RefusalKind.RUNTIME
    assert refusal.line == line_of(VERSIONS["raises"], "no_such_method")


def test_a_limit_of_the_target_is_named_with_both_figures(replies):
    refusal = refused(replies["shared"])
    assert refusal.kind is RefusalKind.COMPILE
    assert "shared memory" in refusal.message
    assert "232448" in refusal.message or "65536" in refusal.message


def test_an_entry_that_launches_nothing_has_a_workload_problem(replies):
    assert refused(replies["none"]).kind is RefusalKind.WORKLOAD


def test_a_missing_module_is_the_environments_fault(replies):
    refusal = refused(replies["missing"])
    assert refusal.kind is RefusalKind.ENVIRONMENT
    assert "no_such_module" in refusal.message
