"""Ending a child with everything below it.

Workers make process groups of their own, so the group of a search host does not hold them: the
tree is read from ``/proc`` before the first kill.
"""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path


def descendants(pid: int, proc: Path = Path("/proc")) -> tuple[int, ...]:
    """Process ids below ``pid``, parents before children; empty where there is no ``/proc``."""
    children: dict[int, list[int]] = {}
    for entry in _process_folders(proc):
        parent = _parent_of(entry)
        if parent is not None:
            children.setdefault(parent, []).append(int(entry.name))
    found: list[int] = []
    todo = [pid]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return tuple(found)


def kill_tree(pid: int) -> None:
    """SIGKILL the group of ``pid``, its descendants and their groups. Never our own group."""
    below = descendants(pid)
    own = os.getpgrp()
    groups = {_group(child) for child in (pid, *below)} - {None, own}
    for group in groups:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group or 0, signal.SIGKILL)
    for child in (pid, *below):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(child, signal.SIGKILL)


def _process_folders(proc: Path) -> list[Path]:
    try:
        return [entry for entry in proc.iterdir() if entry.name.isdigit()]
    except OSError:
        return []


def _parent_of(entry: Path) -> int | None:
    try:
        stat = (entry / "stat").read_text(errors="replace")
    except OSError:
        return None  # ended meanwhile
    return int(stat.rsplit(")", 1)[1].split()[1])


def _group(pid: int) -> int | None:
    try:
        group = os.getpgid(pid)
    except ProcessLookupError:
        return None
    return group if group > 1 else None
