"""``doctor`` says only what it knows, and in sentences."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kernel_lsp.cli import main


def test_without_torch_nothing_is_said_about_devices(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    code = main(["doctor", "--python", str(tmp_path / "bare" / "bin" / "python")])
    out = capsys.readouterr().out
    assert code == 1
    assert "torch       missing" in out and "triton      missing" in out
    assert "device " not in out


def test_a_program_that_is_no_python_is_told_in_one_sentence(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = main(["doctor", "--python", "/bin/ls"])
    out = capsys.readouterr().out.splitlines()
    assert code == 1
    assert [line.split()[0] for line in out] == ["server", "archive", "worker", "problem"]
    assert "could not start with /bin/ls" in out[-1] and "kernelLsp.worker.python" in out[-1]
    assert "{" not in out[-1]
