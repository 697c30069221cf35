"""Analysis of documents off the message path: debounced, in one thread, newest version first."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from kernel_lsp import engine
from kernel_lsp.documents import Document
from kernel_lsp.snapshot import Snapshot, analyse

log = logging.getLogger(__name__)

T = TypeVar("T")

SHORTEST_WAIT, LONGEST_WAIT = 0.1, 0.4
"""Bounds of the debounce in seconds; in between it is twice the recent analysis time."""

PATIENCE = 1.0
"""Someone who types without a pause still gets an analysis this often."""


@dataclass(slots=True)
class _Slot:
    document: Document
    timer: asyncio.TimerHandle | None = None
    task: asyncio.Task[None] | None = None
    waiting_since: float | None = None
    snapshot: Snapshot | None = None
    changed: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(slots=True)
class Analyser:
    """Keeps the newest snapshot of each open document."""

    done: Callable[[Snapshot], None]
    """Called on the loop with each snapshot of a document that is still open."""
    recent_seconds: float = 0.05
    _slots: dict[str, _Slot] = field(default_factory=dict[str, _Slot])
    # One thread: analyses compete for the interpreter lock anyway, and order is kept.
    _pool: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(1, thread_name_prefix="analysis")
    )

    def warm(self) -> None:
        """Import the parser before the first document needs it."""
        self._pool.submit(engine.preload)

    def opened(self, document: Document) -> None:
        """Analyse at once."""
        self._slots[document.uri] = _Slot(document)
        self._start(document.uri)

    def changed(self, uri: str) -> None:
        """Analyse after a pause in typing."""
        slot = self._slots[uri]
        now = time.monotonic()
        slot.waiting_since = slot.waiting_since or now
        pause = min(max(2 * self.recent_seconds, SHORTEST_WAIT), LONGEST_WAIT)
        delay = min(pause, max(0.0, slot.waiting_since + PATIENCE - now))
        if slot.timer is not None:
            slot.timer.cancel()
        slot.timer = asyncio.get_running_loop().call_later(delay, self._start, uri)

    def closed(self, uri: str) -> None:
        """Forget the document."""
        slot = self._slots.pop(uri, None)
        if slot is not None and slot.timer is not None:
            slot.timer.cancel()
        if slot is not None:
            slot.changed.set()

    def latest(self, uri: str) -> Snapshot | None:
        """The newest snapshot, perhaps of an earlier version."""
        slot = self._slots.get(uri)
        return slot.snapshot if slot else None

    async def first(self, uri: str, patience: float = 5.0) -> Snapshot | None:
        """The newest snapshot; waits only if there has been none yet."""
        return await self._wait(uri, patience, lambda slot: slot.snapshot is not None)

    async def fresh(self, uri: str, patience: float = 10.0) -> Snapshot | None:
        """A snapshot of the present version; None if the document is closed or time runs out."""
        slot = self._slots.get(uri)
        if slot is not None and not _is_fresh(slot):
            self._start(uri)
        snapshot = await self._wait(uri, patience, _is_fresh)
        slot = self._slots.get(uri)
        return snapshot if slot is not None and _is_fresh(slot) else None

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Run slow pure work in the analysis thread."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    def close(self) -> None:
        """Start nothing more."""
        for uri in list(self._slots):
            self.closed(uri)
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _wait(
        self, uri: str, patience: float, ready: Callable[[_Slot], bool]
    ) -> Snapshot | None:
        slot = self._slots.get(uri)
        try:
            async with asyncio.timeout(patience):
                while slot is not None and not ready(slot):
                    await slot.changed.wait()
                    slot = self._slots.get(uri)
        except TimeoutError:
            log.warning("no analysis of %s within %.0f s", uri, patience)
        return slot.snapshot if slot else None

    def _start(self, uri: str) -> None:
        slot = self._slots.get(uri)
        if slot is None or slot.task is not None:
            return  # the running analysis starts the next one if it is needed
        if slot.timer is not None:
            slot.timer.cancel()
        slot.timer = slot.waiting_since = None
        slot.task = asyncio.get_running_loop().create_task(self._analyse(slot))

    async def _analyse(self, slot: _Slot) -> None:
        document, version, text = slot.document, slot.document.version, slot.document.text
        started = time.perf_counter()
        try:
            snapshot = await self.in_thread(
                lambda: analyse(document.uri, document.path, document.root, version, text)
            )
        except Exception:
            log.exception("cannot analyse %s", document.path)
            slot.task = None
            return
        slot.task = None
        self.recent_seconds = time.perf_counter() - started
        if self._slots.get(document.uri) is not slot:
            return
        slot.snapshot = snapshot
        document.forget_shifts(version)
        slot.changed.set()
        slot.changed = asyncio.Event()
        self.done(snapshot)
        if document.version != version and slot.timer is None:
            self._start(document.uri)


def _is_fresh(slot: _Slot) -> bool:
    return slot.snapshot is not None and slot.snapshot.version == slot.document.version
