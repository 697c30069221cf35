"""Scratch folders: removed at the end, and after a kill by the next process that needs one."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from search_engine.execution.scratch import scratch_folder

HOLD = """\
import sys
from search_engine.execution.scratch import scratch_folder
with scratch_folder() as folder:
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def _temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)


def held() -> tuple["subprocess.Popen[str]", Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_the_folder_is_gone_at_the_end(tmp_path: Path):
    with pytest.raises(KeyError), scratch_folder() as folder:
        assert folder.parent == tmp_path
        (folder / "tmp").mkdir()
        raise KeyError
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_swept_and_what_is_held_is_not(tmp_path: Path):
    living, kept = held()
    dead, left = held()
    os.kill(dead.pid, signal.SIGKILL)
    dead.communicate()
    assert left.is_dir()
    with scratch_folder():
        assert not left.exists()
        assert kept.is_dir()
    living.communicate()
    assert living.returncode == 0
    assert list(tmp_path.iterdir()) == []


def test_folders_of_others_and_links_are_left_alone(tmp_path: Path):
    (tmp_path / "kernel-lsp-notes").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "held").write_text("")
    (tmp_path / "kernel-lsp-link").symlink_to(tmp_path / "elsewhere")
    with scratch_folder():
        pass
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"kernel-lsp-notes", "elsewhere", "kernel-lsp-link"}
    assert (tmp_path / "elsewhere" / "held").exists()
