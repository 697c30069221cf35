from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from search_engine.archive.facts_key import (
    WorkloadRun,
    code_key,
    imported_files,
    module_context,
    trace_key,
)
from search_engine.domain.job import AssumedArgument, AssumedLaunch
from search_engine.frontends.triton import parse_module
from search_engine.frontends.workload import parse_workloads

TEXT = '''\
"""Doubles."""
import torch
import triton
import triton.language as tl

FACTOR = 2.0


@triton.jit
def scale_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * 2, mask=mask)


def rounded(n):
    return triton.cdiv(n, 64)


# kernel-lsp: workload x=f32[1024]
# kernel-lsp: reference x * 2
def scale(x):
    out = torch.empty_like(x)
    scale_kernel[(rounded(x.numel()),)](x, out, x.numel(), BLOCK=64)
    return out
'''


def key(text: str, folder: Path, target: str = "sm_90", environment: str = "e") -> str:
    module = parse_module(text, str(folder / "k.py"))
    workload = parse_workloads(module)[0][0]
    run = WorkloadRun(workload, 0)
    return code_key(module.units[0], module_context(module, folder), run, target, environment)


@pytest.mark.parametrize(
    "edit",
    [
        lambda text: text.replace('"""Doubles."""\n', "# Twice.\n\n\n"),
        lambda text: text.replace(
            "    mask = offsets < n\n", "    mask = (\n  offsets < n)  # x\n"
        ),
        lambda text: text.replace("reference x * 2", "reference x + x"),
        lambda text: text.replace("x=f32[1024]\n", "x=f32[1024] weight=3\n"),
        lambda text: text + "\n# the end\n",
    ],
)
def test_facts_outlive(tmp_path: Path, edit: Callable[[str], str]) -> None:
    assert edit(TEXT) != TEXT
    assert key(edit(TEXT), tmp_path) == key(TEXT, tmp_path)


@pytest.mark.parametrize(
    "edit",
    [
        lambda text: text.replace("* 2, mask", "* 3, mask"),
        lambda text: text.replace("cdiv(n, 64)", "cdiv(n, 32)"),
        lambda text: text.replace("FACTOR = 2.0", "FACTOR = 3.0"),
        lambda text: text.replace("import torch\n", "import torch\nimport os\n"),
        lambda text: text.replace("f32[1024]", "f32[2048]"),
        lambda text: text.replace("f32[1024]", "f16[1024]"),
        lambda text: text.replace(
            "# kernel-lsp: ref", "# kernel-lsp: setup n = 1\n# kernel-lsp: ref"
        ),
    ],
)
def test_facts_do_not_outlive(tmp_path: Path, edit: Callable[[str], str]) -> None:
    assert edit(TEXT) != TEXT
    assert key(edit(TEXT), tmp_path) != key(TEXT, tmp_path)


def test_target_environment_and_kind_are_told_apart(tmp_path: Path) -> None:
    module = parse_module(TEXT, str(tmp_path / "k.py"))
    unit, run = module.units[0], WorkloadRun(parse_workloads(module)[0][0], 0)
    context = module_context(module, tmp_path)
    assumed = AssumedLaunch("scale_kernel", (AssumedArgument("n", "i32"),), line=4)
    moved = AssumedLaunch("scale_kernel", (AssumedArgument("n", "i32"),), line=5, notes=("n",))
    keys = {
        code_key(unit, context, run, "sm_90", "e"),
        code_key(unit, context, run, "sm_80", "e"),
        code_key(unit, context, run, "sm_90", "f"),
        code_key(unit, context, assumed, "sm_90", "e"),
        code_key(unit, context, moved, "sm_90", "e"),
        trace_key(unit, context, run, "e"),
    }
    assert len(keys) == 5, "only the two assumed launches are the same"


def test_imported_project_files_count_by_content(tmp_path: Path) -> None:
    package = tmp_path / "pack"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "tools.py").write_text("from .deep import LIMIT\n")
    (package / "deep.py").write_text("LIMIT = 1\n")
    (package / "other.py").write_text("LIMIT = 1\n")
    text = TEXT.replace(
        "import torch\n", "import torch\nfrom .tools import (\n    LIMIT as L,\n)\n"
    )
    (package / "k.py").write_text(text)
    before = key(text, package)
    names = {Path(name).name for name, _ in imported_files(package / "k.py", text, tmp_path)}
    assert names == {"__init__.py", "tools.py", "deep.py"}
    (package / "other.py").write_text("LIMIT = 2\n")
    assert key(text, package) == before
    (package / "deep.py").write_text("LIMIT = 22\n")
    assert key(text, package) != before


def test_modules_that_import_each_other_end(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import b, k\n")
    (tmp_path / "b.py").write_text("import a\n")
    found = imported_files(tmp_path / "k.py", "import a\n", tmp_path)
    assert {Path(name).name for name, _ in found} == {"a.py", "b.py"}
