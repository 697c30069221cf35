"""What makes two interpreters the same for facts, read without importing torch or Triton."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from search_engine.execution.environment import scrubbed
from search_engine.execution.staging import content_hash

_SECONDS = 20.0
_STEERING = ("TRITON_", "TORCH", "CUDA_", "PYTHONPATH")
"""Beginnings of variables that may change what is compiled or imported."""
_CODE = """\
import glob, importlib.util, os, shutil, sys
sys.path.pop(0)
def stamp(path):
    status = os.stat(path)
    return f"{path} {status.st_size} {status.st_mtime_ns}"
found = [sys.version, stamp(sys.executable)]
for name in ("triton", "torch"):
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.origin:
        found.append(name + " is missing")
        continue
    folder = os.path.dirname(spec.origin)
    for pattern in ("__init__.py", "version.py", "_C/libtriton*", "backends/*/bin/*"):
        found.extend(stamp(file) for file in sorted(glob.glob(os.path.join(folder, pattern))))
found.append(str(shutil.which("nvdisasm")))
print("\\n".join(found))
"""


async def fingerprint(python: str, cwd: Path, env: Mapping[str, str]) -> str:
    """Hash of interpreter, torch, Triton, its tools, the variables that steer them and the worker.

    An interpreter that cannot be started has a fingerprint too: its worker will say what is wrong.
    """
    environment = {**scrubbed(os.environ), **env}
    steering = sorted(item for item in environment.items() if item[0].startswith(_STEERING))
    found = await _ask(python, cwd, environment)
    text = repr((python, found, steering, sorted(env.items()), content_hash()))
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()


async def _ask(python: str, cwd: Path, environment: dict[str, str]) -> str:
    try:
        process = await asyncio.create_subprocess_exec(
            python, "-c", _CODE, cwd=cwd, env=environment,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        return f"cannot be started: {error}"
    try:
        output, _ = await asyncio.wait_for(process.communicate(), _SECONDS)
    except asyncio.TimeoutError:  # noqa: UP041 (another class before Python 3.11)
        return "does not answer"
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return output.decode(errors="replace")
