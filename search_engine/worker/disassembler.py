"""Disassemble a cubin with the newest ``nvdisasm`` at hand.

The listing names, before an instruction, the source lines (``-gi``) and the line of the PTX text
(``-gp``) that it was made from.
"""

from __future__ import annotations

import functools
import importlib.metadata
import shutil
import subprocess
import tempfile
from pathlib import Path

_WHEEL = "nvidia-cuda-nvdisasm"
_REMEDY = f"install the newest `{_WHEEL}` in the interpreter that runs the kernels"
_SECONDS = 60


class DisassemblerError(Exception):
    """No ``nvdisasm`` could read the cubin; the message names the tool and the remedy."""


@functools.lru_cache(maxsize=64)
def disassemble(cubin: bytes) -> str:
    """The listing of a cubin, by the first tool that can read it. Raises DisassemblerError."""
    problem = "`nvdisasm` was not found"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        for tool in disassemblers():
            try:
                return _listing(tool, file.name)
            except (OSError, subprocess.SubprocessError) as error:
                problem = f"`{tool}` failed: {_reason(error)}"
    raise DisassemblerError(f"Machine code was not read: {problem}; {_REMEDY}.")


@functools.cache
def disassemblers() -> tuple[str, ...]:
    """Paths of every ``nvdisasm`` at hand, the one to prefer first.

    A wheel of its own is newer than the tool that Triton bundles, which may lag behind Triton's
    own assembler.
    """
    found = (_of_wheel(), _of_triton(), shutil.which("nvdisasm"))
    return tuple(dict.fromkeys(path for path in found if path is not None))


def _of_wheel() -> str | None:
    try:
        files = importlib.metadata.files(_WHEEL)
    except importlib.metadata.PackageNotFoundError:
        return None
    tools = [Path(str(file.locate())) for file in files or () if file.name == "nvdisasm"]
    return next((str(tool) for tool in tools if tool.exists()), None)


def _of_triton() -> str | None:
    import triton.backends.nvidia as backend

    bundled = Path(str(backend.__file__)).parent / "bin" / "nvdisasm"
    return str(bundled) if bundled.exists() else None


def _listing(tool: str, path: str) -> str:
    done = subprocess.run(
        [tool, "-gi", "-gp", "-c", path],
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=_SECONDS,
        check=True,
    )
    return done.stdout


def _reason(error: Exception) -> str:
    if isinstance(error, subprocess.CalledProcessError):
        lines = str(error.stderr or "").strip().splitlines()
        return lines[-1].strip() if lines else f"exit status {error.returncode}"
    return str(error)
