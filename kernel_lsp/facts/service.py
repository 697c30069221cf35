"""Facts about the open kernels: asked of one facts host in the background, kept by unit.

A file is asked about after a pause in typing; a newer version takes the place of an older one that
is still waiting. The host is started when it is first needed and again, a little later each time,
when it has died. Everything here runs on the event loop and none of it waits for a compiler.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import Coroutine
from dataclasses import InitVar, dataclass, field
from typing import Any, Protocol

from kernel_lsp.facts.host import FactsLauncher
from kernel_lsp.facts.link import FactsLink
from kernel_lsp.facts.places import TargetFacts, keep
from kernel_lsp.facts.store import FactsStore, ignore_texts, unit_key
from kernel_lsp.snapshot import Snapshot, UnitView
from search_engine.domain.facts_message import (
    CancelRequest,
    Done,
    FactsHostAnswer,
    FactsRequest,
    ListingFound,
    ListingRequest,
    StaticFindings,
    UnitFindings,
)
from search_engine.domain.job import Refusal, RefusalKind

log = logging.getLogger(__name__)

SHORTEST_PAUSE, LONGEST_PAUSE = 1.0, 10.0
"""Seconds after the last edit; in between it is half the time that recent answers took."""

MOST_CRASHES = 3
"""Of the host while it worked on one version of one file; then the version is left alone."""

LISTING_SECONDS = 90.0

OPENED, EDITED, SAVED, ASKED = "opened", "edited", "saved", "asked"
REASONS = {
    "off": {ASKED},
    "onSave": {OPENED, SAVED, ASKED},
    "background": {OPENED, EDITED, SAVED, ASKED},
}
"""What makes a file be compiled, by the setting ``compile``."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What may be asked about one file."""

    root: str
    mode: str
    targets: tuple[str, ...]
    """Empty for the default one, which the host knows."""
    python: str | None
    cwd: str | None
    env: dict[str, str]


class FactsListener(Protocol):
    """Hears about facts, on the event loop."""

    def facts_scope(self, snapshot: Snapshot) -> Scope | None:
        """None where nothing may be executed."""
        ...

    def facts_arrived(self, uri: str) -> None:
        """Something new is known of the units of a file."""
        ...

    def facts_worked(self) -> None:
        """Work has begun or ended."""
        ...

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run work beside the message path."""
        ...


class NoListing(Exception):
    """There is no machine code to show; the message says why."""


@dataclass(slots=True)
class _Slot:
    """One open file."""

    snapshot: Snapshot | None = None
    reasons: set[str] = field(default_factory=lambda: {OPENED})
    asked: set[str] = field(default_factory=set[str])
    """Kernels that the user asked about."""
    again: bool = False
    """Ask also about what is known: something outside the file may have changed."""
    scope: Scope | None = None
    """As it was when the file was last looked at."""
    edited: float = 0.0
    timer: asyncio.TimerHandle | None = None
    live: str | None = None
    """Id of the request that is being served for this file."""
    crashes: int = 0


@dataclass(slots=True)
class _Request:
    """A request that has no ``Done`` yet."""

    uri: str
    snapshot: Snapshot
    scope: Scope
    message: FactsRequest
    open: set[tuple[str, str, str]]
    """Kernel, unit key and target, not answered yet."""
    sent: float | None = None


@dataclass(slots=True)
class Facts:
    """Everything that is known without a GPU about the kernels of this session."""

    launcher: InitVar[FactsLauncher]
    listener: FactsListener
    link: FactsLink = field(init=False)
    store: FactsStore = field(default_factory=FactsStore)
    recent_seconds: float = 0.0
    """How long a request took lately, from sending to its end."""
    _default: str = ""
    """Name of the default target, once an answer has told it."""
    _slots: dict[str, _Slot] = field(default_factory=dict[str, _Slot])
    _requests: dict[str, _Request] = field(default_factory=dict[str, _Request])
    _listings: dict[str, asyncio.Future[ListingFound]] = field(
        default_factory=dict[str, asyncio.Future[ListingFound]]
    )
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    _closed: bool = False

    def __post_init__(self, launcher: FactsLauncher) -> None:
        self.link = FactsLink(launcher, self, self.listener.spawn)

    # Documents

    def opened(self, uri: str) -> None:
        """A file was opened."""
        self._slots[uri] = _Slot()

    def edited(self, uri: str) -> None:
        """A file was edited: whatever is planned for it waits for a pause."""
        slot = self._slots[uri]
        slot.edited, slot.crashes = time.monotonic(), 0
        slot.reasons.add(EDITED)
        _stop(slot)

    def analysed(self, snapshot: Snapshot) -> None:
        """There is a new snapshot of a file."""
        slot = self._slots.get(snapshot.uri)
        if slot is None:
            return
        slot.snapshot = snapshot
        self._drop_outdated(slot)
        self._arm(snapshot.uri, slot)

    def saved(self, uri: str) -> None:
        """A file was saved: files of the same root may import it."""
        slot = self._slots.get(uri)
        if slot is None or slot.snapshot is None:
            return
        scope = self.listener.facts_scope(slot.snapshot)
        for other_uri, other in self._slots.items():
            if other.snapshot is None or scope is None:
                continue
            other_scope = self.listener.facts_scope(other.snapshot)
            if other_scope is not None and other_scope.root == scope.root:
                other.again = True
                other.reasons.add(SAVED)
                self._arm(other_uri, other)

    def closed(self, uri: str) -> None:
        """A file was closed; what is known of its units stays."""
        slot = self._slots.pop(uri, None)
        if slot is not None:
            _stop(slot)
            self._cancel(slot)
            self.listener.facts_worked()
        self.store.forget_file(uri)

    def ask(self, uri: str, kernel: str) -> None:
        """The user asks about a kernel: now, whatever the settings say of the background."""
        slot = self._slots.get(uri)
        if slot is None or slot.snapshot is None:
            return
        slot.reasons.add(ASKED)
        slot.asked.add(kernel)
        slot.edited = slot.crashes = 0
        scope = self.listener.facts_scope(slot.snapshot)
        view = slot.snapshot.unit(kernel)
        if scope is not None and view is not None:
            key = unit_key(view, scope.root)
            slot.again = slot.again or any(self.store.refused(key, t) for t in self._targets(scope))
        self._arm(uri, slot)

    def reconsider(self) -> None:
        """Settings or trust have changed."""
        if any(self.listener.facts_scope(r.snapshot) is None for r in self._requests.values()):
            self._stop()
        for uri, slot in self._slots.items():
            if slot.snapshot is None:
                continue
            scope = self.listener.facts_scope(slot.snapshot)
            if scope != slot.scope:
                slot.scope, slot.again = scope, True
                slot.reasons.add(OPENED)
                self._arm(uri, slot)

    # What is known

    def known(self, snapshot: Snapshot, view: UnitView) -> tuple[TargetFacts, ...]:
        """Facts of a unit in this very form, one for each target that has some."""
        scope = self.listener.facts_scope(snapshot)
        if scope is None:
            return ()
        key = unit_key(view, scope.root)
        found = (self.store.placed(snapshot, view, key, t) for t in self._targets(scope))
        return tuple(facts for facts in found if facts is not None)

    def computing(self, uri: str, kernel: str) -> bool:
        """True while an answer about a kernel is awaited."""
        slot = self._slots.get(uri)
        request = self._requests.get(slot.live or "") if slot is not None else None
        return request is not None and any(name == kernel for name, _, _ in request.open)

    @property
    def busy(self) -> int:
        """Files that are being worked on."""
        return sum(slot.live is not None for slot in self._slots.values())

    @property
    def working(self) -> bool:
        """True while the host owes an answer."""
        return bool(self._requests or self._listings)

    @property
    def pause(self) -> float:
        """Seconds from the last edit to a request."""
        return min(max(SHORTEST_PAUSE, 0.5 * self.recent_seconds), LONGEST_PAUSE)

    async def listing(
        self, snapshot: Snapshot, kernel: str, target: str, line: int | None
    ) -> ListingFound:
        """Annotated machine code. Raises NoListing."""
        scope = self.listener.facts_scope(snapshot)
        if scope is None:
            raise NoListing("nothing is compiled in a workspace that is not trusted")
        number = f"l{next(self._numbers)}"
        file = _message(number, snapshot, scope, (kernel,))
        future = asyncio.get_running_loop().create_future()
        self._listings[number] = future
        try:
            async with asyncio.timeout(LISTING_SECONDS):
                await self.link.ask(ListingRequest(number, file, kernel, target, line))
                found = await future
        except TimeoutError:
            raise NoListing(f"the compiler took more than {LISTING_SECONDS:.0f} s") from None
        except OSError as error:
            raise NoListing(f"the facts host cannot start: {error}") from error
        finally:
            self._listings.pop(number, None)
        if found.problem is not None:
            raise NoListing(found.problem)
        return found

    async def close(self) -> None:
        """Start nothing more and return when the host is gone."""
        self._closed = True
        for slot in self._slots.values():
            _stop(slot)
        await self.link.close()

    # Asking

    def _arm(self, uri: str, slot: _Slot) -> None:
        _stop(slot)
        if not self._closed:
            delay = max(0.0, slot.edited + self.pause - time.monotonic())
            loop = asyncio.get_running_loop()
            slot.timer = loop.call_later(delay, self._consider, uri)

    def _consider(self, uri: str) -> None:
        """Ask about what is missing, if the settings want that now."""
        slot = self._slots.get(uri)
        if slot is None or slot.snapshot is None or self._closed:
            return
        slot.scope = scope = self.listener.facts_scope(slot.snapshot)
        if scope is None or not slot.reasons & REASONS[scope.mode]:
            return
        wanted = self._missing(slot, scope)
        slot.reasons.clear()
        slot.again = False
        live = self._requests.get(slot.live or "")
        if not wanted or (live is not None and wanted <= live.open):
            return
        self._cancel(slot)
        number = f"f{next(self._numbers)}"
        names = tuple(dict.fromkeys(name for name, _, _ in sorted(wanted)))
        message = _message(number, slot.snapshot, scope, names)
        self._requests[number] = _Request(uri, slot.snapshot, scope, message, wanted)
        slot.live = number
        self.listener.facts_worked()
        self.listener.spawn(self._send(number))

    def _missing(self, slot: _Slot, scope: Scope) -> set[tuple[str, str, str]]:
        snapshot = slot.snapshot
        assert snapshot is not None
        if snapshot.module.problems:
            return set()  # it cannot be imported: ask when it is whole again
        ignored = ignore_texts(snapshot)
        wanted: set[tuple[str, str, str]] = set()
        for view in snapshot.units:
            if scope.mode == "off" and view.name not in slot.asked:
                continue
            key = unit_key(view, scope.root)
            wanted |= {
                (view.name, key, target)
                for target in self._targets(scope)
                if slot.again or not self.store.has(key, target, ignored)
            }
        return wanted

    def _targets(self, scope: Scope) -> tuple[str, ...]:
        return scope.targets or (self._default,)

    def _drop_outdated(self, slot: _Slot) -> None:
        """Cancel a request about forms that are no longer in the file."""
        request = self._requests.get(slot.live or "")
        if request is None or slot.snapshot is None:
            return
        present = {unit_key(view, request.scope.root) for view in slot.snapshot.units}
        if not any(key in present for _, key, _ in request.open):
            self._cancel(slot)
            self.listener.facts_worked()

    def _cancel(self, slot: _Slot) -> None:
        number, slot.live = slot.live, None
        request = self._requests.get(number or "")
        if number is None or request is None:
            return
        if request.sent is None or not self.link.tell(CancelRequest(number)):
            del self._requests[number]

    async def _send(self, number: str) -> None:
        try:
            await self.link.ready()
        except OSError as error:
            self._give_up(number, f"the facts host cannot start: {error}")
            return
        request = self._requests.get(number)
        if request is not None and self.link.tell(request.message):
            request.sent = time.monotonic()

    def _stop(self) -> None:
        """Kill the host with all that it does; the next need starts another."""
        for slot in self._slots.values():
            slot.live = None
        self._requests.clear()
        self.link.kill()
        self.listener.facts_worked()

    # Answers

    def take(self, answer: FactsHostAnswer) -> None:
        """The host has said something."""
        match answer:
            case UnitFindings():
                self._take_unit(answer)
            case ListingFound():
                self._answer_listing(answer.id, answer)
            case Done():
                self._done(answer)
            case StaticFindings():
                pass  # the server finds these itself, without a host

    def _take_unit(self, answer: UnitFindings) -> None:
        request = self._requests.get(answer.id)
        view = request.snapshot.unit(answer.kernel, answer.unit_hash) if request else None
        if request is None or view is None or view.hash != answer.unit_hash:
            return
        if not request.scope.targets and answer.target != self._default:
            self._learn_default(answer.target)
        self._keep(request, view, answer)
        key = unit_key(view, request.scope.root)
        request.open.discard((view.name, key, answer.target))
        self.listener.facts_arrived(request.uri)

    def _learn_default(self, target: str) -> None:
        self._default = target
        for request in self._requests.values():
            if not request.scope.targets:
                request.open = {(name, key, target) for name, key, _ in request.open}

    def _keep(self, request: _Request, view: UnitView, answer: UnitFindings) -> None:
        kept = keep(answer, request.snapshot, view)
        key = unit_key(view, request.scope.root)
        self.store.put(key, answer.target, kept, ignore_texts(request.snapshot))

    def _done(self, answer: Done) -> None:
        self._answer_listing(answer.id, None, answer.problem)
        request = self._requests.get(answer.id)
        if request is None:
            return
        self.link.failures = 0
        if answer.cancelled:
            self._forget(answer.id)
            return
        if request.sent is not None:
            seconds = time.monotonic() - request.sent
            self.recent_seconds += 0.5 * (seconds - self.recent_seconds)
        self._give_up(answer.id, answer.problem or "the facts host did not say why")

    def _give_up(self, number: str, reason: str) -> None:
        """End a request; what is still open is known not to be had for ``reason``."""
        request = self._requests.get(number)
        if request is None:
            return
        for name, key, target in request.open:
            for view in request.snapshot.units:
                if view.name == name and unit_key(view, request.scope.root) == key:
                    refusal = Refusal(RefusalKind.ENVIRONMENT, reason)
                    nothing = UnitFindings(
                        number, name, view.hash, target, None, (), (), refusal
                    )  # fmt: skip
                    self._keep(request, view, nothing)
        self._forget(number)
        self.listener.facts_arrived(request.uri)

    def _forget(self, number: str) -> None:
        request = self._requests.pop(number)
        slot = self._slots.get(request.uri)
        if slot is not None and slot.live == number:
            slot.live, slot.crashes = None, 0
        self.listener.facts_worked()

    def _answer_listing(
        self, number: str, found: ListingFound | None, problem: str | None = None
    ) -> None:
        future = self._listings.get(number)
        if future is not None and not future.done():
            missing = problem or "the compiler gave no machine code"
            future.set_result(found or ListingFound(number, "", "", problem=missing))

    def died(self, words: str) -> None:
        """The host died: ask again a little later, but not for ever."""
        for number in list(self._listings):
            self._answer_listing(number, None, f"the facts host stopped: {words}")
        for number, request in list(self._requests.items()):
            slot = self._slots.get(request.uri)
            if slot is None or slot.live != number:
                del self._requests[number]
                continue
            slot.crashes += 1
            if slot.crashes >= MOST_CRASHES:
                self._give_up(number, f"the facts host stopped {MOST_CRASHES} times: {words}")
                continue
            request.sent = None
            self.listener.spawn(self._send(number))


def _message(
    number: str, snapshot: Snapshot, scope: Scope, kernels: tuple[str, ...]
) -> FactsRequest:
    return FactsRequest(
        number, snapshot.path, scope.root, snapshot.text, scope.targets,
        scope.python, scope.cwd, scope.env, kernels,
    )  # fmt: skip


def _stop(slot: _Slot) -> None:
    if slot.timer is not None:
        slot.timer.cancel()
        slot.timer = None
