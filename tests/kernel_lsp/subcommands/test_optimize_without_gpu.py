"""``optimize`` for real without a GPU: what is offered, how it is labelled, and what goes wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from kernel_lsp.subcommands._paths import read_source
from search_engine.service import archive_runs, parse_module

ROOT = Path(__file__).parents[3]
SCHEMA = json.loads((ROOT / "schemas" / "optimize.json").read_text())

SOFTMAX = (ROOT / "examples" / "softmax.py").read_text()

SCALE = """\
import torch
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * 2, mask=mask)


# kernel-lsp: workload x=f32[1024]
# kernel-lsp: reference {reference}
def scale(x):
    {first}
    out = torch.empty_like(x)
    n = x.numel()
    scale_kernel[(triton.cdiv(n, 64),)](x, out, n, BLOCK=64)
    return out
"""


def optimize(path: Path, *options: str, env: dict[str, str] | None = None, archived: bool = False):
    command = [sys.executable, "-m", "kernel_lsp.cli", "optimize", str(path), "--json"]
    command += ["--effort", "quick", "--python", sys.executable, *options]
    command += [] if archived else ["--no-archive"]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, env=env, timeout=200, check=False
    )
    document = json.loads(done.stdout) if done.stdout else None
    if document is not None:
        jsonschema.validate(document, SCHEMA)
    return done.returncode, document, done.stderr


def test_rewrite_is_checked_on_the_interpreter_and_never_called_faster(tmp_path: Path) -> None:
    path = tmp_path / "softmax.py"
    path.write_text(SOFTMAX)
    code, document, log = optimize(path, "--apply")
    assert code == 0, log
    assert document["outcome"] == "unmeasured"
    assert document["device"] is None
    assert document["speedup"] is None
    assert document["baseline_us"] is None
    assert document["correctness"]["method"] == "CPU interpreter"
    assert document["correctness"]["independent_reference"]
    assert "not timed" in document["message"]
    assert document["diff"].startswith("---")
    assert "only a verified improvement is written" in log
    assert path.read_text() == SOFTMAX


def test_byte_order_mark_and_line_ends_of_the_file_survive(tmp_path: Path) -> None:
    path = tmp_path / "softmax.py"
    path.write_bytes(("\ufeff" + SOFTMAX.replace("\n", "\r\n")).encode())
    archive = tmp_path / "archive.sqlite"
    code, document, log = optimize(path, "--archive", str(archive), archived=True)
    assert code == 0, document or log
    assert document["outcome"] == "unmeasured", document
    unit_hash = parse_module(read_source(path), str(path)).units[0].hash
    best = archive_runs(archive, unit_hash)[0].best
    assert best is not None
    assert best.steps
    assert best.text.startswith("\ufeff")
    assert best.text.count("\n") == best.text.count("\r\n")


@pytest.mark.parametrize(
    ("reference", "first", "sentence"),
    [
        ("x * 3", "pass", "disagrees with its reference"),
        (
            "x * 2",
            "raise ValueError('no such mode')",
            "your kernel raises ValueError: no such mode",
        ),
        ("torch.nosuch(x)", "pass", "nosuch"),
    ],
)
def test_baseline_that_cannot_serve(
    tmp_path: Path, reference: str, first: str, sentence: str
) -> None:
    path = tmp_path / "scale.py"
    path.write_text(SCALE.format(reference=reference, first=first))
    code, document, log = optimize(path)
    assert document["outcome"] == "failed", document
    assert document["message"].count("your kernel") <= 1
    assert sentence in document["message"]
    assert code == 2, log


def test_entry_that_never_returns_is_cut_off_by_the_budget(tmp_path: Path) -> None:
    path = tmp_path / "scale.py"
    path.write_text(SCALE.format(reference="x * 2", first="while True: pass"))
    code, document, log = optimize(path, "--budget", "wallSeconds=3")
    assert document["outcome"] == "failed"
    assert "did not return within 3 s" in document["message"]
    assert document["spend"]["wall_seconds"] < 20
    assert code == 2, log


def test_kernel_that_no_rule_fits_is_not_called_slow(tmp_path: Path) -> None:
    path = tmp_path / "scale.py"
    path.write_text(SCALE.format(reference="x * 2", first="pass"))
    code, document, log = optimize(path)
    assert code == 0, log
    assert document["outcome"] == "unmeasured"
    assert document["diff"] == ""
    assert "Nothing was timed" in document["message"]


def test_memory_of_a_worker_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "scale.py"
    greedy = "import resource; assert resource.getrlimit(resource.RLIMIT_AS)[0] > 0"
    path.write_text(SCALE.format(reference="x * 2", first=greedy))
    code, document, log = optimize(path)
    assert document["outcome"] == "unmeasured", document
    assert code == 0, log


def test_interpreter_without_torch_is_named_with_the_setting(tmp_path: Path) -> None:
    path = tmp_path / "scale.py"
    path.write_text(SCALE.format(reference="x * 2", first="pass"))
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    code, document, _ = optimize(path, "--python", str(tmp_path / "bare" / "bin" / "python"))
    assert document["outcome"] == "failed"
    assert "torch" in document["message"]
    assert "kernelLsp.worker.python" in document["message"]
    assert code == 2


def test_missing_interpreter_is_named_with_the_setting(tmp_path: Path) -> None:
    path = tmp_path / "scale.py"
    path.write_text(SCALE.format(reference="x * 2", first="pass"))
    code, document, _ = optimize(path, "--python", "/nowhere/python")
    assert code == 2
    assert document["outcome"] == "failed"
    assert "/nowhere/python" in document["message"]
    assert "kernelLsp.worker.python" in document["message"]


def test_relative_imports_and_src_layout(tmp_path: Path) -> None:
    package = tmp_path / "src" / "pack" / "ops"
    package.mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'p'\nversion = '0'\n")
    (tmp_path / "src" / "pack" / "__init__.py").write_text("FACTOR = 2\n")
    (package / "__init__.py").write_text("")
    (package / "sizes.py").write_text("def rows(x):\n    return x.numel()\n")
    text = SCALE.format(reference="x * 2", first="assert FACTOR == 2")
    text = text.replace("import torch\n", "import torch\nfrom .. import FACTOR\n", 1)
    text = text.replace("import triton\n", "import triton\nfrom .sizes import rows\n", 1)
    path = package / "scale.py"
    path.write_text(text.replace("n = x.numel()", "n = rows(x)"))
    (tmp_path / "torch.py").write_text("raise RuntimeError('the workspace shadows torch')\n")
    code, document, log = optimize(path)
    assert code == 0, document or log
    assert document["outcome"] == "unmeasured"
