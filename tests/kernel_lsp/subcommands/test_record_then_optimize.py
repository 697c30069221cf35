"""A recording is what ``optimize`` runs with, integer tensors by value included."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernel_lsp.subcommands._paths import project_root, read_source
from search_engine.domain.workload import Distribution, TensorArgument, WorkloadSource
from search_engine.service import RunRequest, prepare

ROOT = Path(__file__).parents[3]

GATHER = """\
import torch
import triton
import triton.language as tl


@triton.jit
def gather_kernel(x_ptr, ids_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    ids = tl.load(ids_ptr + offsets, mask=mask, other=0)
    tl.store(out_ptr + offsets, tl.load(x_ptr + ids, mask=mask), mask=mask)


def gather(x, ids):
    assert ids.device.type == "meta" or int(ids.max()) == 298
    out = torch.empty(ids.shape[0], device=x.device)
    n = ids.shape[0]
    gather_kernel[(triton.cdiv(n, 64),)](x, ids, out, n, BLOCK=64)
    return out
"""

SCRIPT = """\
import sys
import torch
sys.path.insert(0, {folder!r})
from {module} import gather
gather(torch.randn(300), torch.arange(100) * 3 + 1)
"""


def command(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "TRITON_INTERPRET": "1"}
    return subprocess.run(
        [sys.executable, "-m", "kernel_lsp.cli", *arguments],
        capture_output=True, text=True, cwd=cwd, env=env, timeout=200, check=False,
    )  # fmt: skip


def project(folder: Path, source: str) -> Path:
    (folder / "pyproject.toml").write_text("[project]\nname = 'p'\nversion = '0'\n")
    path = folder / source
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(GATHER)
    if source.startswith("src/"):
        (path.parent / "__init__.py").write_text("")
    module = ".".join(Path(source.removeprefix("src/")).with_suffix("").parts)
    base = folder / "src" if source.startswith("src/") else folder
    (folder / "x.py").write_text(SCRIPT.format(folder=str(base), module=module))
    return path


@pytest.mark.parametrize("source", ["gather.py", "src/pack/gather.py"])
def test_a_recorded_index_tensor_reaches_the_run(tmp_path: Path, source: str) -> None:
    path = project(tmp_path, source)
    done = command("record", "--python", sys.executable, "--", "python", "x.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "note:" not in done.stderr
    request = RunRequest(path, read_source(path), None, project_root(path))
    prepared = prepare(request)
    assert prepared.workload.source is WorkloadSource.RECORDED
    ids = prepared.workload.cases[0].arguments[1]
    assert isinstance(ids, TensorArgument)
    assert ids.values.distribution is Distribution.RECORDED
    options = ["--json", "--no-archive", "--effort", "quick", "--python", sys.executable]
    done = command("optimize", str(path), *options, cwd=tmp_path)
    document = json.loads(done.stdout)
    assert document["outcome"] == "unmeasured", document
    assert done.returncode == 0, done.stderr


def test_a_recording_elsewhere_is_said_to_be_unread(tmp_path: Path) -> None:
    project(tmp_path, "gather.py")
    options = ["--output", "kept", "--python", sys.executable]
    done = command("record", *options, "--", "python", "x.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "optimize reads .kernel-lsp/workloads of the project, not kept" in done.stderr
    assert list((tmp_path / "kept" / "values").iterdir())
