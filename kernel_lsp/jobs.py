"""Runs: one actor for each kernel, one run at a time on each device, a queue that is visible.

A run ends for the user at once and for the machine a little later: a cancelled run is shown as
cancelled immediately, nothing is published for it after that, and its device is given to the next
run only when every process of it is gone.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from typing import Protocol

from kernel_lsp.host import HostLauncher, HostProcess
from kernel_lsp.runs import Run, RunRequest, closing_message, kept
from search_engine.domain.event import Finished, ImprovementFound, SearchEvent
from search_engine.domain.run import ExitReason, Outcome, RunState

log = logging.getLogger(__name__)

TICK_SECONDS = 0.5
"""Progress is published at most twice a second."""

WRAP_UP_SECONDS = 2.0
"""Past its budget a run is asked to report for this long."""

GRACE_SECONDS = 5.0
"""Budget plus this, and every process of the run is dead."""

ENDED_KEPT = 100


class RunListener(Protocol):
    """Hears about runs. Calls come from the event loop and must not block."""

    def run_started(self, run: Run) -> None:
        """A run exists; it may be queued."""
        ...

    def run_moved(self, run: Run) -> None:
        """State, counts or time have moved; called at most twice a second."""
        ...

    def run_offers(self, run: Run, event: ImprovementFound) -> None:
        """A candidate may be offered."""
        ...

    def run_ended(self, run: Run) -> None:
        """The end; exactly once, and nothing follows."""
        ...


class Conflict(Exception):
    """Another form of the kernel is being searched already."""

    def __init__(self, run: Run) -> None:
        super().__init__(f"{run.request.name} is being optimized in an earlier form ({run.id})")
        self.run = run


@dataclass(slots=True)
class Jobs:
    """All runs of this server."""

    launcher: HostLauncher
    listener: RunListener
    active: dict[str, Run] = field(default_factory=dict[str, Run])
    """Queued and running, by id, in order of start."""
    ended: OrderedDict[str, Run] = field(default_factory=OrderedDict[str, Run])
    _tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict[str, asyncio.Task[None]])
    _stops: dict[str, asyncio.Event] = field(default_factory=dict[str, asyncio.Event])
    _slots: dict[str, asyncio.Lock] = field(default_factory=dict[str, asyncio.Lock])
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    _closed: bool = False

    def start(self, request: RunRequest) -> Run:
        """Queue a run. The same kernel in the same form gives the run that exists already.

        Raises Conflict if the kernel is being searched in another form.
        """
        existing = self.running(request.uri, request.name)
        if existing is not None:
            if existing.request.unit_hash == request.unit_hash:
                return existing
            raise Conflict(existing)
        if self._closed:
            raise RuntimeError("the server is shutting down")
        run = Run(f"r{next(self._numbers)}", request)
        self.active[run.id] = run
        self._stops[run.id] = asyncio.Event()
        self._count_queue()
        self._tasks[run.id] = asyncio.create_task(self._drive(run), name=run.id)
        self.listener.run_started(run)
        return run

    def running(self, uri: str, name: str) -> Run | None:
        """The run of that kernel that has not ended."""
        for run in self.active.values():
            if (run.request.uri, run.request.name) == (uri, name) and not run.ended:
                return run
        return None

    def find(self, run_id: str) -> Run | None:
        """A run by id, ended or not."""
        return self.active.get(run_id) or self.ended.get(run_id)

    def last_for(self, unit_hash: str) -> Run | None:
        """The newest ended run for a unit hash."""
        for run in reversed(self.ended.values()):
            if run.request.unit_hash == unit_hash:
                return run
        return None

    def cancel(self, run_id: str) -> bool:
        """End a run for the user now; its processes follow. False if there is nothing to end."""
        run = self.active.get(run_id)
        if run is None or run.ended:
            return False
        outcome = Outcome.IMPROVED if run.best_verified else Outcome.INCONCLUSIVE
        self._end(run, ExitReason.CANCELLED, outcome, f"cancelled; {kept(run)}")
        self._stops[run_id].set()
        return True

    async def close(self) -> None:
        """Refuse new runs, end all, and return when no process is left."""
        self._closed = True
        for run_id in list(self.active):
            self.cancel(run_id)
        if self._tasks:
            await asyncio.wait(list(self._tasks.values()))

    async def _drive(self, run: Run) -> None:
        slot = self._slots.setdefault(run.request.device, asyncio.Lock())
        try:
            async with slot:
                if not run.ended:
                    await self._search(run)
        finally:
            if not run.ended:
                self._end(run, ExitReason.FAULTED, Outcome.FAILED, "the server failed; see its log")
            self._forget(run)

    async def _search(self, run: Run) -> None:
        run.started, run.state = time.monotonic(), RunState.BASELINE
        try:
            host = await self.launcher.launch(run.request.host_request)
        except OSError as error:
            message = f"the search cannot start: {error}"
            self._end(run, ExitReason.FAULTED, Outcome.FAILED, message)
            return
        reader = asyncio.create_task(self._read(run, host))
        ticker = asyncio.create_task(self._tick(run, host))
        stop = asyncio.create_task(self._stops[run.id].wait())
        try:
            await asyncio.wait((reader, ticker, stop), return_when=asyncio.FIRST_COMPLETED)
            if run.ended:
                host.request_cancel()
        finally:
            for task in (reader, ticker, stop):
                task.cancel()
            results = await asyncio.gather(reader, ticker, stop, return_exceptions=True)
            await host.close()
            for error in results:
                if isinstance(error, Exception):
                    log.error("run %s failed", run.id, exc_info=error)
        if not run.ended:
            self._conclude(run, host)

    async def _read(self, run: Run, host: HostProcess) -> None:
        async for event in host.events():
            if run.ended:
                return
            self._take(run, event)
            if isinstance(event, Finished):
                return

    def _take(self, run: Run, event: SearchEvent) -> None:
        run.observe(event)
        if isinstance(event, ImprovementFound):
            self.listener.run_offers(run, event)

    async def _tick(self, run: Run, host: HostProcess) -> None:
        """Publish progress, and enforce the budget from outside the search."""
        asked = False
        while run.elapsed < run.request.budget_seconds + GRACE_SECONDS - 1:
            await asyncio.sleep(TICK_SECONDS)
            if run.ended:
                return
            self.listener.run_moved(run)
            if not asked and run.elapsed > run.request.budget_seconds + WRAP_UP_SECONDS:
                host.request_cancel()
                asked = True
        host.kill()

    def _conclude(self, run: Run, host: HostProcess) -> None:
        report = run.report
        if report is not None:
            self._end(run, report.exit_reason, report.outcome, closing_message(run, report))
        elif run.elapsed >= run.request.budget_seconds:
            outcome = Outcome.IMPROVED if run.best_verified else Outcome.INCONCLUSIVE
            self._end(run, ExitReason.BUDGET, outcome, f"out of time; {kept(run)}")
        else:
            status = host.process.returncode
            message = f"the search stopped (status {status}: {host.last_words}); {kept(run)}"
            self._end(run, ExitReason.STOPPED, Outcome.FAILED, message)

    def _end(self, run: Run, reason: ExitReason, outcome: Outcome, message: str) -> None:
        run.finish(reason, outcome, message)
        run.request = replace(run.request, host_request={})  # holds texts of all open files
        self.ended[run.id] = run
        while len(self.ended) > ENDED_KEPT:
            self.ended.popitem(last=False)
        self.listener.run_ended(run)

    def _forget(self, run: Run) -> None:
        self.active.pop(run.id, None)
        self._tasks.pop(run.id, None)
        self._stops.pop(run.id, None)
        self._count_queue()

    def _count_queue(self) -> None:
        ahead: dict[str, int] = {}
        for run in self.active.values():
            run.queue_ahead = ahead.get(run.request.device, 0)
            ahead[run.request.device] = run.queue_ahead + 1
