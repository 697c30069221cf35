from __future__ import annotations

import sys
from pathlib import Path

from search_engine.execution.fingerprint import fingerprint


async def test_it_changes_with_what_is_installed_and_with_variables(tmp_path: Path) -> None:
    package = tmp_path / "triton"
    package.mkdir()
    (package / "__init__.py").write_text("__version__ = '1'\nraise RuntimeError('imported')\n")
    env = {"PYTHONPATH": str(tmp_path)}
    first = await fingerprint(sys.executable, tmp_path, env)
    assert await fingerprint(sys.executable, tmp_path, env) == first
    (package / "__init__.py").write_text("__version__ = '2.0'\n")
    second = await fingerprint(sys.executable, tmp_path, env)
    assert second != first
    assert await fingerprint(sys.executable, tmp_path, {**env, "TRITON_DEBUG": "1"}) != second


async def test_an_interpreter_that_is_not_there_has_one_too(tmp_path: Path) -> None:
    missing = str(tmp_path / "python")
    assert await fingerprint(missing, tmp_path, {}) == await fingerprint(missing, tmp_path, {})


async def test_a_module_of_the_working_folder_is_not_taken_for_the_installed_one(
    tmp_path: Path,
) -> None:
    before = await fingerprint(sys.executable, tmp_path, {})
    (tmp_path / "triton.py").write_text("")
    assert await fingerprint(sys.executable, tmp_path, {}) == before
