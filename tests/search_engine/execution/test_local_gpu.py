"""On a card: device workers find what compile workers compiled; other lanes see no card."""

import sys
from pathlib import Path

import pytest

from search_engine.domain.job import (
    CompileJob,
    CompileReply,
    Completed,
    HangJob,
    Lane,
    ProbeJob,
    ProbeReply,
    Source,
)
from search_engine.domain.workload import (
    Case,
    Distribution,
    Extent,
    TensorArgument,
    Values,
    Workload,
    WorkloadSource,
)
from search_engine.execution.local import LocalExecutor

pytestmark = pytest.mark.gpu

KERNEL = """\
import torch
import triton
import triton.language as tl

HITS = []
triton.knobs.compilation.listener = lambda *, cache_hit, **_: HITS.append(cache_hit)


@triton.jit
def double_kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)


def double(x):
    y = torch.empty_like(x)
    double_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
    return y
"""


@pytest.fixture
def executor(tmp_path: Path) -> LocalExecutor:
    return LocalExecutor(
        sys.executable, tmp_path, scratch=tmp_path / "scratch", cache_folder=tmp_path / "cache"
    )


def source(root: Path) -> Source:
    return Source("1", str(root), str(root / "kernels.py"), "kernels", KERNEL, "double")


async def test_a_probe_on_the_device_lane_finds_the_card(executor):
    result = await executor.run(ProbeJob(), Lane.FRESH_DEVICE, 60)
    hidden = await executor.run(ProbeJob(), Lane.COMPILE, 60)
    await executor.close()
    assert isinstance(result, Completed)
    assert isinstance(result.reply, ProbeReply)
    assert result.reply.problems == ()
    assert result.reply.devices[0].memory_bytes > 1024**3
    assert isinstance(hidden, Completed)
    assert hidden.reply.devices == ()


async def test_the_device_finds_what_the_compile_worker_compiled(executor, tmp_path):
    probe = await executor.run(ProbeJob(), Lane.DEVICE, 60)
    target = probe.reply.devices[0].target
    x = TensorArgument("x", "f32", (Extent(65536),), Values(Distribution.NORMAL))
    workload = Workload("double", WorkloadSource.DECLARED, (Case((x,)),))
    compiled = await executor.run(
        CompileJob(source(tmp_path), workload, 0, target), Lane.COMPILE, 60
    )
    assert isinstance(compiled.reply, CompileReply)
    shown = await executor.run(HangJob("show environment", 0), Lane.DEVICE, 60)
    await executor.close()
    environment = dict(eval(shown.reply.message))
    hits = run_on_device(environment, source(tmp_path))
    assert hits == "[True]"


def run_on_device(environment: dict[str, str], version: Source) -> str:
    """Load and call a version in a new process with a device worker's environment."""
    import subprocess

    import search_engine

    root = str(Path(search_engine.__file__).parents[1])
    Path(environment["TMPDIR"]).mkdir(parents=True, exist_ok=True)
    code = (
        f"import sys; sys.path.insert(0, {root!r})\n"
        "import torch\n"
        "from search_engine.domain.job import Source\n"
        "from search_engine.worker.loader import entry, load\n"
        f"source = {version!r}\n"
        "module = load(source)\n"
        "x = torch.randn(65536, device='cuda')\n"
        "assert torch.equal(entry(module, source)(x), x * 2)\n"
        "print(module.HITS)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True
    )
    return done.stdout.strip()
