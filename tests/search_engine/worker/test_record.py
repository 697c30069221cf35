"""A program that is recorded runs as before, and its launches become workloads."""

import sys
from pathlib import Path

import pytest

from search_engine.domain.workload import Distribution, ScalarArgument, TensorArgument, Workload
from search_engine.execution.recording import RecordSummary, record, recorded

pytest.importorskip("triton")

KERNELS = """\
import torch
import triton
import triton.language as tl


def bench(call, quantiles):
    call()
    return [1.0, 1.0, 1.0]


@triton.autotune([triton.Config({"B": 64}), triton.Config({"B": 128})], key=["n"], do_bench=bench)
@triton.jit
def gather_kernel(x, ids, y, n, stride, B: tl.constexpr):
    row, columns = tl.program_id(0), tl.arange(0, B)
    source = tl.load(ids + row)
    values = tl.load(x + source * stride + columns, mask=columns < n)
    tl.store(y + row * n + columns, values, mask=columns < n)


def gather(x, ids, *, scale: float = 1.0, dtype=torch.float32):
    y = torch.empty(ids.shape[0], x.shape[1], dtype=dtype)
    gather_kernel[(ids.shape[0],)](x, ids, y, x.shape[1], x.stride(0))
    return y * scale


class Layer:
    def forward(self, x, ids):
        return gather(x, ids)


def packed(*tensors):
    return gather(*tensors)
"""
PROGRAM = """\
import sys
import sitecustomize
import torch
from package.kernels import Layer, gather, packed


def test_gather():
    x = torch.arange(500.0).reshape(10, 50)
    ids = torch.tensor([3, 1, 2])
    for _ in range(3):
        assert torch.equal(gather(x, ids), x[ids])
    wide = torch.zeros(10, 64)[:, 4:54]
    gather(wide, torch.tensor([9, 9, 0, 1]), scale=float("inf"))
    Layer().forward(x, ids)
    packed(x, ids)


if __name__ == "__main__":
    test_gather()
    assert sitecustomize.MINE == 1
    print("arguments", sys.argv[1:])
    sys.exit(5)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    files = {
        "package/__init__.py": "",
        "package/kernels.py": KERNELS,
        "test_program.py": PROGRAM,
        "site/sitecustomize.py": "MINE = 1\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


async def run(project: Path, *command: str, output: int | None = None) -> RecordSummary:
    return await record(
        command,
        sys.executable,
        project,
        project / ".kernel-lsp" / "workloads",
        env={"TRITON_INTERPRET": "1", "PYTHONPATH": str(project / "site")},
        cache_folder=project / "cache",
        **({} if output is None else {"output": output}),
    )


def workload_of(project: Path) -> Workload:
    found = recorded(project / ".kernel-lsp" / "workloads", "package.kernels", "gather")
    assert found is not None
    return found


async def test_a_script_runs_as_before_and_its_calls_are_kept(project: Path):
    with (project / "printed").open("wb") as printed:
        summary = await run(project, "python", "test_program.py", "a b", output=printed.fileno())
    assert (project / "printed").read_text() == "arguments ['a b']\n"
    assert summary.exit_code == 5
    (entry,) = summary.entries
    assert (entry.module, entry.entry) == ("package.kernels", "gather")
    assert (entry.cases, entry.calls) == (2, 6)  # neither trials nor the second launch count
    assert len(summary.problems) == 2
    assert "`self` is a Layer" in summary.problems[0]
    assert "`tensors` is a PackedArguments" in summary.problems[1]


async def test_recorded_arguments_are_those_of_the_call(project: Path):
    import torch

    await run(project, "python", "-m", "test_program")
    frequent, rare = workload_of(project).cases
    assert frequent.weight > rare.weight
    x, ids, scale, dtype = frequent.arguments
    assert isinstance(x, TensorArgument)
    assert isinstance(ids, TensorArgument)
    assert (x.dtype, x.shape, x.strides) == ("f32", (10, 50), None)
    assert (scale, dtype) == (
        ScalarArgument("scale", "1.0"),
        ScalarArgument("dtype", "torch.float32"),
    )
    assert ids.values.distribution is Distribution.RECORDED
    assert ids.values.file is not None
    kept = torch.load(project / ".kernel-lsp" / "workloads" / ids.values.file, weights_only=True)
    assert kept.tolist() == [3, 1, 2]
    x, _, scale, _ = rare.arguments
    assert isinstance(x, TensorArgument)
    assert (x.shape, x.strides, x.offset) == ((10, 50), (64, 1), 4)
    assert scale == ScalarArgument("scale", "float('inf')")


async def test_pytest_is_recorded_without_being_asked(project: Path):
    summary = await run(project, "pytest", "-q", "-p", "no:cacheprovider", "test_program.py")
    assert summary.exit_code == 0
    assert [entry.calls for entry in summary.entries] == [6]


@pytest.mark.slow
async def test_calls_of_all_processes_of_torchrun_add_up(project: Path):
    (project / "test_program.py").write_text(PROGRAM.replace("sys.exit(5)", ""))
    summary = await run(project, "torchrun", "--nproc-per-node=2", "test_program.py")
    assert summary.exit_code == 0
    assert [(entry.cases, entry.calls) for entry in summary.entries] == [(2, 12)]


async def test_a_program_without_triton_is_left_alone(project: Path):
    (project / "plain.py").write_text("import sys\nassert 'torch' not in sys.modules\n")
    summary = await run(project, "python", "plain.py")
    assert summary == RecordSummary(0, (), ())
