"""``optimize`` that is told to end cleans up, whichever signal says so."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SOFTMAX = (ROOT / "examples" / "softmax.py").read_text()


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_ends_the_run_and_leaves_no_scratch(tmp_path: Path, name: str) -> None:
    path = tmp_path / "softmax.py"
    path.write_text(SOFTMAX)
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    command = [sys.executable, "-m", "kernel_lsp.cli", "optimize", str(path), "--json"]
    process = subprocess.Popen(
        [*command, "--no-archive", "--python", sys.executable],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
        env={**os.environ, "TMPDIR": str(temporary)},
    )  # fmt: skip
    assert process.stderr is not None
    assert any("baseline" in line for line in process.stderr)
    assert [p.name for p in temporary.iterdir() if p.name.startswith("kernel-lsp-")]
    process.send_signal(getattr(signal, name))
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 130
    assert json.loads(out)["exit_reason"] == "cancelled"
    assert not [p.name for p in temporary.iterdir() if p.name.startswith("kernel-lsp-")]
