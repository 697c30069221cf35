"""The one mutable object of the server: documents, runs, offers, trust, and who is told what."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kernel_lsp import engine
from kernel_lsp.analyser import Analyser
from kernel_lsp.archived import load_offers, make_offer
from kernel_lsp.client import Client, Level
from kernel_lsp.documents import Change, Document
from kernel_lsp.facts.host import FactsLauncher
from kernel_lsp.facts.service import Facts, Scope
from kernel_lsp.features.diagnostics import diagnostics
from kernel_lsp.features.state import FileState, UnitState
from kernel_lsp.host import HostLauncher
from kernel_lsp.jobs import Jobs
from kernel_lsp.latency import Latencies
from kernel_lsp.listings import Listings
from kernel_lsp.offers import OfferBook
from kernel_lsp.places import Places, find_devices
from kernel_lsp.positions import Encoding
from kernel_lsp.runs import Run
from kernel_lsp.settings import Settings
from kernel_lsp.snapshot import Snapshot, UnitView
from kernel_lsp.trust import TrustStore
from kernel_lsp.workspace import Workspace
from search_engine.domain.event import ImprovementFound
from search_engine.domain.run import ExitReason, Outcome

log = logging.getLogger(__name__)

FORMS_REMEMBERED = 1000
"""Of units that were looked up in the archive; every edit inside one makes a new form."""

TOGETHER_SECONDS = 0.05
"""Facts that arrive within this time are shown in one publish."""


@dataclass(slots=True)
class Session:
    """Everything the server knows. Used from the event loop alone."""

    client: Client
    places: Places
    workspace: Workspace
    trust: TrustStore
    jobs: Jobs = field(init=False)
    launcher: HostLauncher = field(repr=False)
    facts_launcher: FactsLauncher = field(repr=False)
    facts: Facts = field(init=False)
    listings: Listings = field(init=False)
    documents: dict[str, Document] = field(default_factory=dict[str, Document])
    offers: OfferBook = field(default_factory=OfferBook)
    latencies: Latencies = field(default_factory=Latencies)
    encoding: Encoding = Encoding.UTF16
    details: dict[tuple[str, str], bool] = field(default_factory=dict[tuple[str, str], bool])
    """By (uri, kernel): whether its findings are shown on their lines, where the user said so."""
    analyser: Analyser = field(init=False)
    has_device: bool = field(default_factory=find_devices)
    _archive_read: set[str] = field(default_factory=set[str])
    """Unit hashes that were looked up in the archive."""
    _changed: dict[str, asyncio.Event] = field(default_factory=dict[str, asyncio.Event])
    _tasks: set[asyncio.Task[Any]] = field(default_factory=set[asyncio.Task[Any]])
    _device_target: str | None = None
    """Architecture of the GPU here, once a run has told it."""
    _arrived: set[str] = field(default_factory=set[str])
    """Files with facts that are not shown yet."""
    _hints_shown: bool = False
    _told_status: tuple[str, bool, str] | None = None
    _counting: set[asyncio.Task[Any]] = field(default_factory=set[asyncio.Task[Any]])
    """Offers whose candidate is still being hashed."""

    def __post_init__(self) -> None:
        self.jobs = Jobs(self.launcher, self)
        self.facts = Facts(self.facts_launcher, self)
        self.listings = Listings(self.places.listings)
        self.analyser = Analyser(self._analysed)
        self.workspace.on_problems = lambda text: self.client.show(Level.WARNING, text)

    # Documents

    def open(self, uri: str, path: str, version: int, text: str) -> None:
        """A document was opened."""
        document = Document.opened(uri, path, self.workspace.root_of(path), version, text)
        self.documents[uri] = document
        self._changed[uri] = asyncio.Event()
        self.facts.opened(uri)
        self.analyser.opened(document)
        if not self.workspace.known(document.root):
            self.spawn(self.read_settings((document.root,)))

    def change(self, uri: str, version: int, changes: tuple[Change, ...]) -> None:
        """A document was edited; unknown ones are ignored."""
        document = self.documents.get(uri)
        if document is None:
            return
        document.apply(version, changes, self.encoding)
        self.analyser.changed(uri)
        self.facts.edited(uri)
        self._changed[uri].set()
        self._changed[uri] = asyncio.Event()

    def close_document(self, uri: str) -> None:
        """A document was closed. Its runs go on."""
        if self.documents.pop(uri, None) is None:
            return
        self.analyser.closed(uri)
        self.facts.closed(uri)
        self._changed.pop(uri).set()
        self.details = {item: show for item, show in self.details.items() if item[0] != uri}
        self.client.clear(uri)

    async def wait_for_change(self, uri: str, seconds: float) -> bool:
        """True if the editor changes the document within ``seconds``."""
        event = self._changed.get(uri)
        if event is None:
            return False
        try:
            async with asyncio.timeout(seconds):
                await event.wait()
        except TimeoutError:
            return False
        return True

    # What features read

    def state(self, snapshot: Snapshot) -> FileState:
        """The state of one file, for features."""
        root = self.root(snapshot)
        settings = self.workspace.settings(root)
        return FileState(
            snapshot=snapshot,
            units=tuple(self._unit_state(snapshot, view, settings) for view in snapshot.units),
            settings=settings,
            trusted=self.trust.trusted(root, settings),
            device=self.has_device and settings.device != "none",
            on_disk=snapshot.uri.startswith("file:"),
        )

    def root(self, snapshot: Snapshot) -> str:
        """Workspace root of a file."""
        return self.workspace.root_of(snapshot.path)

    def archive_path(self, settings: Settings) -> str:
        """The archive that this user and workspace use."""
        return settings.archive.path or str(self.places.archive)

    def listing_target(self, state: FileState, unit: UnitState) -> str:
        """The target whose machine code is shown where none is named."""
        known = [facts.target for facts in unit.facts if facts.summary is not None]
        return (known or [*self._targets(state.settings), engine.default_target()])[0]

    def _targets(self, settings: Settings) -> tuple[str, ...]:
        """Targets of findings: those of the settings, else of the device that runs have found."""
        found = (self._device_target,) if self._device_target else ()
        return settings.finding_targets or found

    def _unit_state(self, snapshot: Snapshot, view: UnitView, settings: Settings) -> UnitState:
        details = self.details.get((snapshot.uri, view.name), settings.details == "perLine")
        return UnitState(
            view=view,
            run=self.jobs.running(snapshot.uri, view.name),
            last=self.jobs.last_for(view.hash),
            best=self.offers.best(view.hash),
            untimed=self.offers.untimed(view.hash),
            applied=self.offers.applied(view.hash),
            stale=self.offers.stale(view.name, snapshot.path, view.hash),
            details=details,
            facts=self.facts.known(snapshot, view),
            computing=self.facts.computing(snapshot.uri, view.name),
        )

    # What the editor is shown

    def publish(self, uri: str) -> None:
        """Publish diagnostics, if the newest snapshot is of the present version."""
        snapshot, document = self.analyser.latest(uri), self.documents.get(uri)
        if snapshot is None or document is None or snapshot.version != document.version:
            return  # a newer analysis is on its way and publishes
        self.client.publish(snapshot, diagnostics(self.state(snapshot)))

    def publish_all(self) -> None:
        """Publish everything anew: settings or trust have changed."""
        self.facts.reconsider()
        for uri in self.documents:
            self.publish(uri)
        self.client.refresh_lenses()
        self._refresh_hints()
        self.tell_status()

    def tell_status(self) -> None:
        """Tell the status item."""
        running, compiling = len(self.jobs.active), self.facts.busy
        ready = "Kernel: ready"
        if not self.has_device:
            ready = "Kernel: no GPU here, rewrites are not timed"
        health = "ok" if self.has_device or running else "warning"
        if running:
            text = f"Kernel: {running} running"
        elif compiling:
            noun = "file" if compiling == 1 else "files"
            text = f"Kernel: compiling {compiling} {noun}"
        else:
            text = ready
        status = (health, not (running or compiling), text)
        if status != self._told_status:
            self._told_status = status
            self.client.status(*status)

    # Facts: FactsListener

    def facts_scope(self, snapshot: Snapshot) -> Scope | None:
        """What may be asked; nothing where code may not be run."""
        root = self.root(snapshot)
        settings = self.workspace.settings(root)
        if not snapshot.uri.startswith("file:") or not self.trust.trusted(root, settings):
            return None
        worker = settings.worker
        targets = self._targets(settings)
        return Scope(root, settings.compile, targets, worker.python, worker.cwd, worker.env)

    def facts_arrived(self, uri: str) -> None:
        """Show what is new, once for all that arrives together."""
        if uri not in self._arrived:
            self._arrived.add(uri)
            asyncio.get_running_loop().call_later(TOGETHER_SECONDS, self._show_facts, uri)

    def facts_worked(self) -> None:
        """Tell the status item."""
        self.tell_status()

    def _show_facts(self, uri: str) -> None:
        self._arrived.discard(uri)
        if uri in self.documents:
            self.publish(uri)
            self._refresh_hints()

    def _refresh_hints(self) -> None:
        """Where some are shown, or were until now."""
        roots = {document.root for document in self.documents.values()}
        wanted = any(self.workspace.settings(root).inlay_hints for root in roots)
        if wanted or self._hints_shown:
            self.client.refresh_hints()
        self._hints_shown = wanted

    def _analysed(self, snapshot: Snapshot) -> None:
        self.facts.analysed(snapshot)
        self.publish(snapshot.uri)
        self.client.refresh_lenses()
        unread = [view for view in snapshot.units if view.hash not in self._archive_read]
        if unread:
            if len(self._archive_read) > FORMS_REMEMBERED:
                self._archive_read.clear()  # reading some again is cheaper than growing for ever
            self._archive_read.update(view.hash for view in unread)
            self.spawn(self._read_archive(snapshot, tuple(unread)))

    async def _read_archive(self, snapshot: Snapshot, views: tuple[UnitView, ...]) -> None:
        archive = self.archive_path(self.workspace.settings(self.root(snapshot)))
        if not Path(archive).is_file():
            return
        found = await self.analyser.in_thread(lambda: load_offers(archive, snapshot, views))
        for offer in found:
            self.offers.add(offer)
        if found:
            self.publish(snapshot.uri)
            self.client.refresh_lenses()

    # Settings

    async def read_settings(self, roots: tuple[str, ...] = ()) -> None:
        """Ask the editor for the settings of ``roots``, or of everything that is open."""
        wanted = roots or tuple(
            {document.root for document in self.documents.values()}
            | {str(folder) for folder in self.workspace.folders}
        )
        answers = await self.client.configuration(wanted) if wanted else None
        for root, answer in zip(wanted, answers or (), strict=False):
            self.workspace.set_editor(root, answer)
        self.publish_all()

    # Runs: RunListener

    def run_started(self, run: Run) -> None:
        """Show that the run exists."""
        self.client.progress_begin(run.token, f"Optimize {run.request.name}", run.line())
        self._run_changed(run)
        self.tell_status()

    def run_moved(self, run: Run) -> None:
        """Show how it stands."""
        view = self._present_form(run)
        same = view is None or view.hash == run.request.unit_hash
        suffix = "" if same else "(for the version at start)"
        self.client.progress_report(run.token, run.percentage, run.line(suffix))
        self.client.run_update(run.update())

    def run_offers(self, run: Run, event: ImprovementFound) -> None:
        """Keep a candidate that may be offered."""
        if not event.verified and event.evidence.speedup is not None:
            return
        task = self.spawn(self._add_offer(run, event))
        self._counting.add(task)
        task.add_done_callback(self._counting.discard)

    def run_ended(self, run: Run) -> None:
        """Tell the end, once, and show what it left."""
        if run.report is not None and run.report.device is not None:
            self._device_target = run.report.target or self._device_target
        shown = self.client.progress_end(run.token, run.message)
        self.client.run_update(run.update())
        self._say_end(run, shown)
        self.spawn(self._after_end(run))

    async def _after_end(self, run: Run) -> None:
        if self._counting:
            await asyncio.wait(set(self._counting))
        self._run_changed(run)
        self.tell_status()

    def _run_changed(self, run: Run) -> None:
        self.publish(run.request.uri)
        self.client.refresh_lenses()

    async def _add_offer(self, run: Run, event: ImprovementFound) -> None:
        request = run.request
        offer = await self.analyser.in_thread(
            lambda: make_offer(
                run.id, request.name, request.path, request.unit_hash, request.text, event
            )
        )
        self.offers.add(offer)
        self._run_changed(run)

    def _say_end(self, run: Run, shown: bool) -> None:
        name = run.request.name
        if run.exit_reason is ExitReason.CANCELLED:
            if not shown:
                self.client.show(Level.INFO, f"{name}: {run.message}")
        elif run.outcome is Outcome.FAILED:
            self.client.show(Level.WARNING, f"{name}: {run.message}")
        else:
            self.client.show(Level.INFO, f"{name}: {run.message}{self._next_step(run)}")

    def _next_step(self, run: Run) -> str:
        if not run.verified or self.client.draws_runs:
            return ""
        view = self._present_form(run)
        name = run.request.name
        if view is not None and view.hash != run.request.unit_hash:
            return f" (for the version at start). Code action “Re-verify {name}…”."
        if run.best_verified is not None:
            return f'. Code action "Review {run.best_verified.value:.2f}x rewrite of {name}".'
        return '. Code action "Review CPU-checked rewrite…".'

    def _present_form(self, run: Run) -> UnitView | None:
        snapshot = self.analyser.latest(run.request.uri)
        return snapshot.unit(run.request.name, run.request.unit_hash) if snapshot else None

    # Tasks

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run work beside the message path; a failure is logged, never lost."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)
        return task

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a background task failed", exc_info=error)

    async def close(self) -> None:
        """End every run and process; nothing is published after this."""
        await asyncio.gather(self.jobs.close(), self.facts.close())
        for task in list(self._tasks):
            task.cancel()
        self.analyser.close()
