"""What a process that the user's code starts can get hold of, and how much a worker may use."""

import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

import search_engine
from search_engine.domain.job import HangJob, Lane
from search_engine.execution.local import LocalExecutor

ROOT = str(Path(search_engine.__file__).parents[1])


def test_limits_hold_in_a_process(tmp_path: Path):
    code = (
        f"import sys; sys.path.insert(0, {ROOT!r})\n"
        "from search_engine.worker.lifetime import apply_limits\n"
        "apply_limits({'file_bytes': 1000, 'memory_bytes': 300 * 1024**2, 'nice': 3})\n"
        "import os, resource\n"
        "assert os.nice(0) >= 3\n"
        "assert resource.getrlimit(resource.RLIMIT_CORE) == (0, 0)\n"
        "try:\n"
        "    bytearray(400 * 1024**2); print('memory')\n"
        "except MemoryError: pass\n"
        f"file = os.open({str(tmp_path / 'file')!r}, os.O_WRONLY | os.O_CREAT)\n"
        "try:\n"
        "    os.write(file, b'x' * 5000); os.write(file, b'x'); print('file')\n"
        "except OSError: pass\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


@pytest.mark.parametrize("behaviour", ["leave child", "leave daemon"])
async def test_processes_of_the_users_code_do_not_hold_the_channel(tmp_path: Path, behaviour: str):
    executor = LocalExecutor(
        sys.executable, tmp_path, scratch=tmp_path / "s", cache_folder=tmp_path / "c", imports=()
    )
    try:
        await executor.run(HangJob(behaviour, 321.5), Lane.DEVICE, 20)
        sleeper = wait_for_sleeper("321.5", str(tmp_path))
        links = [str(link.readlink()) for link in Path(f"/proc/{sleeper.pid}/fd").iterdir()]
        assert not any(link.startswith("socket:") for link in links), links
    finally:
        await executor.close()
    assert not sleeper.is_running()


def wait_for_sleeper(mark: str, folder: str) -> psutil.Process:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        for process in psutil.process_iter():
            try:
                if f"time.sleep({mark})" in " ".join(process.cmdline()) and folder in str(
                    process.environ()
                ):
                    return process
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                continue
    raise AssertionError("the process was not started")
