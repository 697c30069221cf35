"""The server's commands. Each takes one JSON object and answers one at once; runs go on behind."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias, cast

from kernel_lsp import edits
from kernel_lsp.client import FileEdit, Level
from kernel_lsp.edits import EditRefused
from kernel_lsp.facts.service import NoListing
from kernel_lsp.features.blockers import blocker, explain, helper_blocker
from kernel_lsp.features.evidence import Review, review
from kernel_lsp.features.finding_actions import place_of
from kernel_lsp.features.report import report
from kernel_lsp.features.state import FileState, UnitState
from kernel_lsp.jobs import Conflict
from kernel_lsp.offers import Offer
from kernel_lsp.runs import Run, RunRequest
from kernel_lsp.session import Session
from kernel_lsp.settings import Settings, merge, override
from search_engine.domain.run import Effort

log = logging.getLogger(__name__)

Argument: TypeAlias = dict[str, Any]
Answer: TypeAlias = dict[str, Any]

CHANGE_SECONDS = 3.0
"""How long an editor may take from its answer to an edit until the text has changed."""


class CommandRefused(Exception):
    """The command cannot be carried out; the message is for the user."""


@dataclass(frozen=True, slots=True)
class Command:
    """A name as advertised, and what it does."""

    name: str
    run: Callable[[Session, Argument], Awaitable[Answer]]


async def optimize(session: Session, argument: Argument) -> Answer:
    """Start a run: ``{uri, kernel, unitHash?, effort?, budget?, rules?}`` → ``{runId, state, …}``.

    With ``rules`` only those rewrite rules are tried, and configurations.
    """
    state, unit = await _unit(session, argument)
    blocked = blocker(state, unit)
    if blocked is not None:
        message = f"{unit.name} cannot be optimized: {blocked.reason}. {blocked.remedy}"
        session.client.show(Level.WARNING, message)
        return {"state": "refused", "reason": blocked.reason, "remedy": blocked.remedy}
    try:
        run = session.jobs.start(_run_request(session, state, unit, argument))
    except Conflict as conflict:
        session.client.show(Level.INFO, f"{conflict}; cancel that run to search the new form")
        return {"state": "conflict", "runningRunId": conflict.run.id}
    return _run_answer(run)


async def verify(session: Session, argument: Argument) -> Answer:
    """Search the present form of a kernel with the quick budget."""
    return await optimize(session, {**argument, "effort": Effort.QUICK.value, "unitHash": None})


async def cancel(session: Session, argument: Argument) -> Answer:
    """End a run: ``{runId}``, or ``{uri, kernel}``, or ``{}`` for the newest."""
    run = _find_run(session, argument)
    cancelled = run is not None and session.jobs.cancel(run.id)
    return {"cancelled": cancelled, "runId": run.id if run else None}


async def show_review(session: Session, argument: Argument) -> Answer:
    """Show an offer beside the text: ``{runId, candidateId}``, else the best here."""
    offer = await _offer(session, argument)
    current = await _is_current(session, offer)
    shown = await session.analyser.in_thread(lambda: review(offer, current))
    if not session.client.draws_runs and not argument.get("quiet"):
        await _open_diff(session, shown)
    return _camel(asdict(shown))


async def apply(session: Session, argument: Argument) -> Answer:
    """Apply an offer: ``{runId, candidateId}``, or ``{uri, kernel}`` for the best."""
    offer = await _offer(session, argument)
    edit = await edit_for(session, {"action": "apply", **_offer_data(session, offer)})
    return await _make_edit(session, edit)


async def declare_workload(session: Session, argument: Argument) -> Answer:
    """Write a first workload declaration: ``{uri, kernel}``."""
    _, unit = await _unit(session, argument)
    edit = await edit_for(session, {**argument, "kernel": unit.name, "action": "declare"})
    return await _make_edit(session, edit)


async def record_workloads(session: Session, argument: Argument) -> Answer:
    """Say how to record what a program of the user's passes to the kernel."""
    _, unit = await _unit(session, argument)
    command = "kernel-lsp record -- python YOUR_PROGRAM.py"
    text = f"To record the inputs of {unit.name}, run in a terminal: {command}"
    session.client.show(Level.INFO, text)
    return {"command": command, "message": text}


async def trust_workspace(session: Session, argument: Argument) -> Answer:
    """Trust the workspace of a file, now and later: ``{uri}``."""
    document = session.documents.get(str(argument.get("uri")))
    if document is None:
        raise CommandRefused("open a file of the workspace first")
    session.trust.grant(document.root)
    session.publish_all()
    trusted = session.trust.trusted(document.root, session.workspace.settings(document.root))
    if not trusted:
        reason = "the editor does not trust this workspace, or kernelLsp.trust is “never”"
        session.client.show(Level.WARNING, f"{reason}: change it there")
    return {"trusted": trusted, "root": document.root}


async def details(session: Session, argument: Argument) -> Answer:
    """Show or hide per-line diagnostics of a kernel: ``{uri, kernel, show?}``."""
    state, unit = await _unit(session, argument)
    show = bool(argument.get("show", not unit.details))
    uri = state.snapshot.uri
    session.details[(uri, unit.name)] = show
    if show:
        session.facts.ask(uri, unit.name)
    session.publish(uri)
    session.client.refresh_lenses()
    return {"shown": show}


async def ignore(session: Session, argument: Argument) -> Answer:
    """Hide a finding by a comment: the ``data`` of the action, for editors that resolve none."""
    return await _make_edit(session, await edit_for(session, {**argument, "action": "ignore"}))


async def listing(session: Session, argument: Argument) -> Answer:
    """Show machine code: ``{uri, kernel?, line?, target?}``, at the first row of the line."""
    state, unit = await _unit(session, argument)
    line = argument.get("line")
    target = argument.get("target") or session.listing_target(state, unit)
    try:
        found = await session.facts.listing(
            state.snapshot, unit.name, str(target), line if isinstance(line, int) else None
        )
    except NoListing as problem:
        raise CommandRefused(f"no machine code of {unit.name}: {problem}") from problem
    place = await session.analyser.in_thread(lambda: session.listings.keep(found, state.snapshot))
    if not argument.get("quiet") and not await session.client.show_listing(place):
        session.client.show(Level.INFO, f"the machine code stands in {place.path}")
    return {"path": str(place.path), "row": place.row, "target": found.target}


async def explain_kernel(session: Session, argument: Argument) -> Answer:
    """Say why a kernel cannot be optimized: ``{uri, kernel}``."""
    snapshot = await session.analyser.fresh(str(argument.get("uri")))
    if snapshot is None:
        raise CommandRefused("open the file first")
    state = session.state(snapshot)
    unit = _pick(state, argument)
    text = explain(state, unit) if unit is not None else _explain_helper(state, argument)
    session.client.show(Level.INFO, text)
    return {"message": text}


async def make_report(session: Session, argument: Argument) -> Answer:
    """A text for a bug report; without source text and without values of the environment."""
    return {"report": report(session)}


COMMANDS = (
    Command("kernelLsp.optimize", optimize),
    Command("kernelLsp.cancel", cancel),
    Command("kernelLsp.review", show_review),
    Command("kernelLsp.apply", apply),
    Command("kernelLsp.verify", verify),
    Command("kernelLsp.details", details),
    Command("kernelLsp.ignore", ignore),
    Command("kernelLsp.listing", listing),
    Command("kernelLsp.declareWorkload", declare_workload),
    Command("kernelLsp.recordWorkloads", record_workloads),
    Command("kernelLsp.trustWorkspace", trust_workspace),
    Command("kernelLsp.explain", explain_kernel),
    Command("kernelLsp.report", make_report),
)


async def edit_for(session: Session, data: Argument) -> FileEdit:
    """The edit that an action's ``data`` asks for. Raises EditRefused if it cannot be made."""
    uri, name = str(data.get("uri")), str(data.get("kernel"))
    if uri not in session.documents:
        raise EditRefused("the file is not open")
    snapshot = await session.analyser.fresh(uri)
    if snapshot is None:
        raise EditRefused("the file is being edited; try again")
    if data.get("action") == "declare":
        return await session.analyser.in_thread(lambda: edits.declaring(name, snapshot))
    if data.get("action") == "ignore":
        return _ignoring(session.state(snapshot), data)
    offer = session.offers.find(str(data.get("runId")), str(data.get("candidateId")))
    if offer is None:
        raise EditRefused("this rewrite is no longer known; run the search again")
    make = edits.reverting if data.get("action") == "revert" else edits.applying
    return await session.analyser.in_thread(lambda: make(offer, snapshot))


def _ignoring(state: FileState, data: Argument) -> FileEdit:
    view = state.snapshot.unit(str(data.get("kernel")), str(data.get("unitHash")))
    unit = next((unit for unit in state.units if unit.view is view), None)
    index = data.get("index")
    if unit is None or unit.view.hash != data.get("unitHash") or not isinstance(index, int):
        raise EditRefused("the kernel has changed")
    finding = place_of(state, unit, str(data.get("code")), index)
    if finding is None:
        raise EditRefused("the finding is gone")
    return edits.ignoring(finding, state.snapshot, unit.name)


def _explain_helper(state: FileState, argument: Argument) -> str:
    name, line = argument.get("kernel"), argument.get("line")
    module = state.snapshot.module
    helper = next((k for k in module.kernels if k.qualified_name == name), None)
    if helper is None and isinstance(line, int):
        helper = state.snapshot.kernel_at(line)
    if helper is None:
        raise CommandRefused("there is no Triton kernel here; place the cursor in one")
    users = tuple(unit.name for unit in state.units if helper in unit.view.unit.helpers)
    blocked = helper_blocker(helper, users)
    return f"{blocked.reason}. {blocked.remedy}"


async def _make_edit(session: Session, edit: FileEdit) -> Answer:
    """Send an edit, then look at the text: an editor's "applied" proves nothing."""
    uri, version = edit.snapshot.uri, edit.snapshot.version
    document = session.documents.get(uri)
    if document is None or document.version != version:
        raise EditRefused("the file is being edited; try again")
    answer = await session.client.apply(edit)
    if not answer.applied:
        text = f"{edit.label}: not applied ({answer.reason}). You can review the diff instead."
        session.client.show(Level.WARNING, text)
        return {"applied": False, "message": text}
    if document.version == version:
        await session.wait_for_change(uri, CHANGE_SECONDS)
    if not await _has_arrived(session, edit):
        text = f"{edit.label}: the editor answered yes, but the text is not as expected"
        session.client.show(Level.WARNING, text)
        return {"applied": False, "message": text}
    return {"applied": True, "message": edit.label}


async def _has_arrived(session: Session, edit: FileEdit) -> bool:
    snapshot = await session.analyser.fresh(edit.snapshot.uri)
    if snapshot is None or snapshot.version == edit.snapshot.version:
        return False
    view = snapshot.unit(edit.name, edit.expected_hash)
    if edit.expected_hash is None:
        return snapshot.text != edit.snapshot.text
    return view is not None and view.hash == edit.expected_hash


async def _unit(session: Session, argument: Argument) -> tuple[FileState, UnitState]:
    uri = str(argument.get("uri"))
    if uri not in session.documents:
        raise CommandRefused("open the file first")
    snapshot = await session.analyser.fresh(uri)
    if snapshot is None:
        raise CommandRefused("the file is being edited; try again")
    state, name = session.state(snapshot), argument.get("kernel")
    unit = _pick(state, argument)
    if unit is None:
        raise CommandRefused(f"there is no Triton kernel {name or ''} to optimize here".rstrip())
    return state, unit


def _pick(state: FileState, argument: Argument) -> UnitState | None:
    """The unit that a command names: by ``kernel``, by 0-based ``line``, else the only one."""
    if argument.get("kernel") is not None:
        return state.unit(str(argument["kernel"]))
    line = argument.get("line")
    if isinstance(line, int):
        views = state.snapshot.units_at(line, line)
        here = [unit for unit in state.units if unit.view in views]
        if here:
            return here[0]
    return state.units[0] if len(state.units) == 1 else None


def _run_request(
    session: Session, state: FileState, unit: UnitState, argument: Argument
) -> RunRequest:
    settings, snapshot = _run_settings(state.settings, argument), state.snapshot
    root = session.root(snapshot)
    worker = settings.worker
    host_request: dict[str, Any] = {
        "path": snapshot.path,
        "text": snapshot.text,
        "kernel": unit.name,
        "root": root,
        "python": worker.python,
        "cwd": worker.cwd,
        "env": {**_device_environment(settings.device), **worker.env},
        "effort": settings.effort,
        "budget": settings.budget_request,
        "target": settings.run_target(state.device),
        "rules": _rules(argument),
        "archive": session.archive_path(settings),
        "open_documents": {
            document.path: document.text
            for document in session.documents.values()
            if document.uri != snapshot.uri and document.root == root
        },
    }
    return RunRequest(
        snapshot.uri, snapshot.path, unit.name, unit.view.hash, snapshot.text, root,
        settings.effort, settings.budget_seconds, settings.device, host_request,
    )  # fmt: skip


def _run_settings(settings: Settings, argument: Argument) -> Settings:
    """The settings a run keeps to its end; effort and budget may come with the command."""
    wanted = {"effort": argument.get("effort"), "budget": argument.get("budget")}
    try:
        return override(settings, merge(wanted))
    except ValueError as error:
        raise CommandRefused(str(error)) from error


def _rules(argument: Argument) -> list[str]:
    """Rewrite rules that a run is led by; none for all of them."""
    rules: Any = argument.get("rules") or []
    if not isinstance(rules, list):
        raise CommandRefused("rules must be a list of names of rewrite rules")
    return [str(rule) for rule in cast("list[Any]", rules)]


def _device_environment(device: str) -> dict[str, str]:
    if device == "auto":
        return {}
    return {"CUDA_VISIBLE_DEVICES": "" if device == "none" else device}


def _run_answer(run: Run) -> Answer:
    return {
        "runId": run.id,
        "state": run.state.value,
        "token": run.token,
        "device": run.request.device,
        "queueAhead": run.queue_ahead,
    }


def _find_run(session: Session, argument: Argument) -> Run | None:
    if "runId" in argument:
        return session.jobs.find(str(argument["runId"]))
    if "kernel" in argument:
        return session.jobs.running(str(argument.get("uri")), str(argument["kernel"]))
    # The cursor need not stand in the kernel that is meant: the newest run is.
    active = [run for run in session.jobs.active.values() if not run.ended]
    return active[-1] if active else None


async def _offer(session: Session, argument: Argument) -> Offer:
    if "candidateId" in argument:
        offer = session.offers.find(str(argument.get("runId")), str(argument["candidateId"]))
    else:
        _, unit = await _unit(session, argument)
        offer = unit.best or (unit.untimed[0] if unit.untimed else unit.stale)
    if offer is None:
        raise CommandRefused("there is no rewrite to show; run the search first")
    return offer


def _offer_data(session: Session, offer: Offer) -> Argument:
    paths = [d.uri for d in session.documents.values() if d.path == offer.path]
    uri = paths[0] if paths else ""
    return {"uri": uri, "kernel": offer.name, "runId": offer.run_id, "candidateId": offer.id}


async def _is_current(session: Session, offer: Offer) -> bool:
    uri = _offer_data(session, offer)["uri"]
    snapshot = await session.analyser.fresh(uri) if uri else None
    view = snapshot.unit(offer.name, offer.unit_hash) if snapshot else None
    return view is not None and view.hash == offer.unit_hash


async def _open_diff(session: Session, shown: Review) -> None:
    """Editors without a view of their own get a file with evidence and diff."""
    path = session.places.diffs / f"{shown.run_id}-{shown.candidate_id}.diff"
    header = "".join(f"# {line}\n" for line in shown.evidence.splitlines())
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(header + shown.diff, encoding="utf-8")
    except OSError as error:
        log.warning("cannot write %s: %s", path, error)
        return
    if not await session.client.show_document(str(Path(path))):
        session.client.show(Level.INFO, f"the diff stands in {path}")


def _camel(data: dict[str, Any]) -> dict[str, Any]:
    def name(key: str) -> str:
        first, *rest = key.split("_")
        return first + "".join(part.capitalize() for part in rest)

    return {name(key): value for key, value in data.items()}
