"""A worker imports the real torch and the standard library, whatever the workspace holds."""

import sys
from pathlib import Path

from search_engine.domain.job import Completed, HangJob, Lane, ProbeJob, ProbeReply
from search_engine.execution.local import LocalExecutor


async def test_files_of_the_workspace_shadow_neither_torch_nor_the_standard_library(tmp_path: Path):
    for name in ("torch", "triton", "types", "json", "socket", "search_engine", "boot"):
        (tmp_path / f"{name}.py").write_text(f"raise ImportError('{name} of the workspace')\n")
    executor = LocalExecutor(
        sys.executable, tmp_path, scratch=tmp_path / ".s", cache_folder=tmp_path / ".c"
    )
    try:
        result = await executor.run(ProbeJob(), Lane.COMPILE, 60)
    finally:
        await executor.close()
    assert isinstance(result, Completed)
    assert isinstance(result.reply, ProbeReply)
    assert result.reply.problems == ()
    assert result.reply.torch
    assert result.reply.triton


async def test_the_workspace_on_pythonpath_still_comes_last(tmp_path: Path):
    (tmp_path / "resource.py").write_text("raise ImportError('of the workspace')\n")
    executor = LocalExecutor(
        sys.executable,
        tmp_path,
        {"PYTHONPATH": str(tmp_path)},
        scratch=tmp_path / ".s",
        cache_folder=tmp_path / ".c",
        imports=(),
    )
    try:
        result = await executor.run(HangJob("print", 0), Lane.COMPILE, 20)
    finally:
        await executor.close()
    assert isinstance(result, Completed)
    assert "survived" in result.reply.message
