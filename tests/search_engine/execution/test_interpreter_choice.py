"""The interpreter is the one the user would expect, and never a resolved link."""

from pathlib import Path

from search_engine.execution.interpreter_choice import find_python


def make_python(folder: Path) -> Path:
    python = folder / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\n")
    python.chmod(0o755)
    return python


def test_the_order_is_setting_workspace_active_environment_path(tmp_path: Path):
    workspace = tmp_path / "workspace"
    on_path = make_python(tmp_path / "usr").with_name("python3")
    on_path.write_text("#!/bin/sh\n")
    on_path.chmod(0o755)
    environ = {"PATH": str(on_path.parent)}
    assert find_python(workspace, None, environ) == on_path
    active = make_python(tmp_path / "active")
    environ["VIRTUAL_ENV"] = str(tmp_path / "active")
    assert find_python(workspace, None, environ) == active
    own = make_python(workspace / ".venv")
    assert find_python(workspace, None, environ) == own
    assert find_python(workspace, "/opt/python", environ) == Path("/opt/python")


def test_a_relative_setting_belongs_to_the_workspace(tmp_path: Path):
    assert find_python(tmp_path, "env/bin/python", {}) == tmp_path / "env/bin/python"


def test_a_virtual_environment_is_not_resolved_to_the_python_behind_it(tmp_path: Path):
    real = make_python(tmp_path / "real")
    link = tmp_path / "workspace" / ".venv" / "bin" / "python"
    link.parent.mkdir(parents=True)
    link.symlink_to(real)
    assert find_python(tmp_path / "workspace", None, {}) == link


def test_there_is_always_an_interpreter(tmp_path: Path):
    assert find_python(tmp_path, None, {"PATH": ""}).exists()
