"""The main job for real: Neovim, server, search host, workers, one applied edit."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_demo_applies_a_checked_rewrite_and_says_that_it_is_not_timed() -> None:
    done = subprocess.run(
        [
            sys.executable,
            str(ROOT / "editors" / "nvim" / "demo" / "run.py"),
            "--example",
            "row_sum",
        ],
        capture_output=True,
        text=True,
        timeout=220,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    said = done.stdout
    assert "lens:" in said
    assert "progress:" in said
    applied = (ROOT / ".demo" / "row_sum.py").read_text()
    assert applied != (ROOT / "examples" / "row_sum.py").read_text()
    ast.parse(applied)
    if "not timed" not in said:  # a machine with a GPU measures
        assert "verified" in said
