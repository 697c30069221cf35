"""The stage is complete, shared, mended, and free of anything but the staged files."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from search_engine.execution.staging import content_hash, stage, staged_files


def test_the_stage_imports_without_the_project_and_its_packages(tmp_path: Path):
    folder = stage(tmp_path)
    code = (
        f"import sys; sys.path.insert(0, {str(folder)!r})\n"
        "import search_engine.worker.main, search_engine.execution.wire as wire\n"
        f"assert wire.__file__.startswith({str(folder)!r}), wire.__file__\n"
        "assert 'pygls' not in sys.modules and 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-I", "-S", "-c", code], check=True, cwd=tmp_path)


def test_two_servers_may_stage_at_once(tmp_path: Path):
    with ThreadPoolExecutor(8) as pool:
        folders = set(pool.map(lambda _: stage(tmp_path), range(16)))
    assert len(folders) == 1
    assert [entry.name for entry in tmp_path.iterdir()] == [f"stage-{content_hash()}"]


def test_a_damaged_stage_is_mended(tmp_path: Path):
    folder = stage(tmp_path)
    (folder / "boot.py").unlink()
    (folder / "search_engine" / "domain" / "job.py").unlink()
    assert stage(tmp_path) == folder
    assert all((folder / name).exists() for name in staged_files())


def test_packages_are_staged_with_empty_init_files(tmp_path: Path):
    folder = stage(tmp_path)
    assert {file.read_bytes() for file in folder.rglob("__init__.py")} == {b""}
