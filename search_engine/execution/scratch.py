"""Temporary folders that do not outlive their process for long, however it ends.

A folder is held by a lock on a file in it, which the kernel drops when the process is gone, killed
or not; the next process to make a folder removes those that nobody holds. A lock, unlike a process
id, is also right between containers that share ``/tmp``.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Generator
from pathlib import Path

_PREFIX = "kernel-lsp-"
_LOCK = "held"


@contextlib.contextmanager
def scratch_folder() -> Generator[Path]:
    """A new folder, removed at the end. Raises OSError if there can be none."""
    sweep(Path(tempfile.gettempdir()))
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    lock = os.open(folder / f"{_LOCK}.new", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # Named once it is locked: a sweep that sees the name sees the lock.
        (folder / f"{_LOCK}.new").rename(folder / _LOCK)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def sweep(parent: Path) -> None:
    """Remove this user's folders whose process is gone; never raises for what it cannot remove."""
    for folder in parent.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            if not folder.is_symlink() and folder.stat().st_uid == os.getuid():
                _remove_if_free(folder)


def _remove_if_free(folder: Path) -> None:
    lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # BlockingIOError, an OSError, if held
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(lock)
