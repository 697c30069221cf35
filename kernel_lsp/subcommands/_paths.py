"""Where things are: the project of a file, and the user's archive."""

from __future__ import annotations

import os
from pathlib import Path

from search_engine.service import RequestError

_MARKERS = (".git", "pyproject.toml", ".kernel-lsp")


def project_root(path: Path) -> Path:
    """The nearest folder above ``path`` with a project marker; else its own folder."""
    for folder in path.resolve().parents:
        if any((folder / name).exists() for name in _MARKERS):
            return folder
    return path.resolve().parent


def state_folder() -> Path:
    """``$XDG_STATE_HOME/kernel-lsp``."""
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(base) / "kernel-lsp"


def archive_path() -> Path:
    """The archive of this user."""
    return state_folder() / "archive.sqlite"


def interpreter(option: str | None) -> str | None:
    """The ``--python`` option: a path from the working directory, or a bare name from PATH."""
    if option is None or os.sep not in option:
        return option
    return os.path.abspath(option)  # noqa: PTH100 - resolving links would leave a virtual environment


def read_source(path: Path) -> str:
    """The text of a source file. Raises RequestError if it cannot be read."""
    try:
        return path.read_bytes().decode("utf-8")
    except OSError as error:
        raise RequestError(f"{path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise RequestError(f"{path}: not UTF-8 text at byte {error.start}") from error
