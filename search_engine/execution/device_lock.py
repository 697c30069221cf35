"""One lock per physical card, shared by all servers and command lines of a user on a machine.

Two runs that time kernels on one card at once spoil each other's measurements. The lock is an
advisory file lock: it is released by the kernel when its holder dies, however it dies.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import re
import tempfile
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

_RETRY_SECONDS = 0.2


@contextlib.asynccontextmanager
async def hold(
    uuid: str, waiting: Callable[[str], None], folder: Path | None = None
) -> AsyncGenerator[None]:
    """Hold the lock of a card. ``waiting`` is told once, with the holder, if it is taken.

    Waiting does not block the event loop and ends when the awaiting task is cancelled.
    """
    descriptor = os.open(lock_file(uuid, folder), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        told = False
        while not _try_lock(descriptor):
            if not told:
                waiting(os.pread(descriptor, 100, 0).decode(errors="replace").strip())
                told = True
            await asyncio.sleep(_RETRY_SECONDS)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"process {os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def lock_file(uuid: str, folder: Path | None = None) -> Path:
    """The lock's file in the runtime directory; the directory is created."""
    parent = folder if folder is not None else runtime_folder()
    parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return parent / f"device-{re.sub(r'[^A-Za-z0-9.-]', '_', uuid)}.lock"


def runtime_folder() -> Path:
    """``$XDG_RUNTIME_DIR/kernel-lsp``, or a folder of this user's in the temporary directory."""
    base = os.environ.get("XDG_RUNTIME_DIR")
    if base and os.access(base, os.W_OK):
        return Path(base) / "kernel-lsp"
    return Path(tempfile.gettempdir()) / f"kernel-lsp-{os.getuid()}"


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
