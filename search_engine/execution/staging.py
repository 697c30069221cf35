"""Copy the worker's files to a folder of their own, named by their content.

Workers run in the user's interpreter, which must never see the server's site-packages: only the
staged files, whose ``__init__`` modules are empty. Servers of different versions have different
stages; servers of the same version share one, and may create it at the same time.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
from functools import cache
from pathlib import Path

import search_engine

_PACKAGES = ("domain", "worker")
_WIRE = Path("search_engine/execution/wire.py")


def stage(cache_folder: Path | None = None) -> Path:
    """The folder that holds ``boot.py`` and the staged packages; created or mended as needed."""
    files = staged_files()
    parent = cache_folder if cache_folder is not None else default_cache_folder()
    folder = parent / f"stage-{content_hash()}"
    if not folder.is_dir():
        _create(folder, files)
    for name, data in files.items():
        if not (folder / name).exists():
            _write(folder / name, data)
    return folder


def default_cache_folder() -> Path:
    """``$XDG_CACHE_HOME/kernel-lsp``, or ``~/.cache/kernel-lsp``."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "kernel-lsp"


@cache
def content_hash() -> str:
    """Hash of everything that is staged; the worker repeats it in its first message."""
    digest = hashlib.sha256()
    for name, data in sorted(staged_files().items()):
        digest.update(f"{name}\0{len(data)}\0".encode())
        digest.update(data)
    return digest.hexdigest()[:16]


@cache
def staged_files() -> dict[str, bytes]:
    """Relative path to content."""
    root = Path(search_engine.__file__).parent
    files = {"search_engine/__init__.py": b"", "search_engine/execution/__init__.py": b""}
    for package in _PACKAGES:
        for file in sorted((root / package).glob("*.py")):
            name = f"search_engine/{package}/{file.name}"
            files[name] = b"" if file.name == "__init__.py" else file.read_bytes()
    files[str(_WIRE)] = (root / "execution" / "wire.py").read_bytes()
    files["boot.py"] = (root / "worker" / "boot.py").read_bytes()
    return files


def _create(folder: Path, files: dict[str, bytes]) -> None:
    """Write everything beside the final folder, then rename: readers see all of it or nothing."""
    partial = folder.with_name(f"{folder.name}.{os.getpid()}-{secrets.token_hex(4)}")
    try:
        for name, data in files.items():
            target = partial / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        partial.rename(folder)
    except OSError:
        if not folder.is_dir():  # another server did not win the race: a real failure
            raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _write(file: Path, data: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_name(f".{file.name}.{os.getpid()}-{secrets.token_hex(4)}")
    partial.write_bytes(data)
    partial.replace(file)
