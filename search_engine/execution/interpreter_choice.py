"""Which Python runs the workers: the one that has the user's torch and Triton."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

_FOLDERS = (".venv", "venv", ".conda", "env")
"""Where virtual and conda environments lie in a workspace, most usual first."""


def find_python(
    workspace: Path, setting: str | None, environ: Mapping[str, str] = os.environ
) -> Path:
    """The interpreter for workers; nothing is started to find it.

    In this order: the setting (a path, relative to the workspace, or a command on PATH), an
    environment inside the workspace, the active virtual or conda environment, ``python3`` on
    PATH. The setting is returned as it is even if the file is missing, so that the failure names
    what the user wrote.
    """
    if setting:
        return _from_setting(workspace, setting)
    return next(_candidates(workspace, environ))


def _from_setting(workspace: Path, setting: str) -> Path:
    path = Path(setting).expanduser()
    if path.is_absolute():
        return path
    if len(path.parts) == 1 and (found := shutil.which(setting)):
        return Path(found)
    return workspace / path


def _candidates(workspace: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    folders = [workspace / name for name in _FOLDERS]
    folders += [Path(environ[name]) for name in ("VIRTUAL_ENV", "CONDA_PREFIX") if name in environ]
    for folder in folders:
        # The link itself is kept: resolving it would leave the environment.
        python = folder / "bin" / "python"
        if os.access(python, os.X_OK):
            yield python
    if found := shutil.which("python3", path=environ.get("PATH")):
        yield Path(found)
    yield Path(sys.executable)
