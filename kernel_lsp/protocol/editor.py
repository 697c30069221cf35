"""The editor over LSP: implements ``kernel_lsp.client.Client``."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.uris import from_fs_path

from kernel_lsp.protocol.capabilities import ClientFeatures

if TYPE_CHECKING:
    from kernel_lsp.client import ApplyAnswer, FileEdit, Level
    from kernel_lsp.features.diagnostics import Diagnostic
    from kernel_lsp.listings import ListingPlace
    from kernel_lsp.server import KernelServer
    from kernel_lsp.snapshot import Snapshot

log = logging.getLogger(__name__)

ANSWER_SECONDS = 30.0
"""Longest wait for an editor's answer to something it does without asking its user."""

ASK_SECONDS = 600.0
"""Longest wait for an edit, which some editors show to the user first."""


@dataclass(slots=True)
class _Bar:
    """A progress: nothing is sent before it is open or after it is closed."""

    open: bool = False
    closed: bool = False
    percentage: int = 0
    message: str = ""


@dataclass(slots=True)
class Editor:
    """What the connected client can be asked; silent about what it lacks."""

    server: KernelServer
    features: ClientFeatures = field(default_factory=ClientFeatures)
    shows_texts: bool = False
    """The client has agreed to ask for texts of ``kernel-listing:`` documents."""
    _bars: dict[str, _Bar] = field(default_factory=dict[str, _Bar])

    @property
    def draws_runs(self) -> bool:
        """The editor shows runs itself."""
        return self.features.runs

    def publish(self, snapshot: Snapshot, diagnostics: tuple[Diagnostic, ...]) -> None:
        """Publish, with the version that the ranges belong to."""
        from kernel_lsp.protocol import to_lsp

        session = self.server.session
        locator = to_lsp.Locator(snapshot, None, session.encoding)
        base = session.workspace.settings(session.root(snapshot)).help_url
        shown = [to_lsp.diagnostic(d, locator, self.features, base) for d in diagnostics]
        version = snapshot.version if self.features.diagnostic_versions else None
        self.server.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(snapshot.uri, shown, version)
        )

    def clear(self, uri: str) -> None:
        """One empty publish."""
        self.server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, []))

    def refresh_lenses(self) -> None:
        """Where the client listens."""
        if self.features.lens_refresh:
            request = self.server.workspace_code_lens_refresh_async(None)
            self.server.session.spawn(_quietly(request, "lenses were not refreshed"))

    def refresh_hints(self) -> None:
        """Where the client listens."""
        if self.features.hint_refresh:
            request = self.server.workspace_inlay_hint_refresh_async(None)
            self.server.session.spawn(_quietly(request, "hints were not refreshed"))

    def show(self, level: Level, text: str) -> None:
        """``window/showMessage``; never a request, which takes the keyboard in some editors."""
        self.server.window_show_message(
            types.ShowMessageParams(types.MessageType(level.value), text)
        )

    def progress_begin(self, token: str, title: str, message: str) -> None:
        """Ask for a progress; ``begin`` follows the answer."""
        if self.features.progress and not self.features.runs:
            self._bars[token] = _Bar(message=message)
            self.server.session.spawn(self._begin(token, title))

    def progress_report(self, token: str, percentage: int, message: str) -> None:
        """Report if the progress is open and something has changed."""
        bar = self._bars.get(token)
        if bar is None or (message == bar.message and percentage <= bar.percentage):
            return
        bar.percentage, bar.message = max(percentage, bar.percentage), message
        if bar.open:
            value = types.WorkDoneProgressReport(
                cancellable=True, message=message, percentage=bar.percentage
            )
            self._progress(token, value)

    def progress_end(self, token: str, message: str) -> bool:
        """End it exactly once; a progress that never began gets no end."""
        bar = self._bars.pop(token, None)
        if bar is None or bar.closed:
            return self.features.runs
        bar.closed = True
        if bar.open:
            self._progress(token, types.WorkDoneProgressEnd(message=message))
        return bar.open

    def run_update(self, update: dict[str, Any]) -> None:
        """Only to clients that have said they know it."""
        if self.features.runs:
            self.server.protocol.notify("kernelLsp/runUpdate", update)

    def status(self, health: str, quiescent: bool, message: str) -> None:
        """The server status of rust-analyzer's extension, which several editors read."""
        if self.features.server_status:
            status = {"health": health, "quiescent": quiescent, "message": message}
            self.server.protocol.notify("experimental/serverStatus", status)

    async def apply(self, edit: FileEdit) -> ApplyAnswer:
        """``workspace/applyEdit``. An error answer is a user's "no" in some editors."""
        from kernel_lsp.client import ApplyAnswer
        from kernel_lsp.protocol import to_lsp

        session = self.server.session
        value = to_lsp.workspace_edit(edit, edit.snapshot.version, session.encoding, self.features)
        metadata = types.WorkspaceEditMetadata(is_refactoring=True)
        params = types.ApplyWorkspaceEditParams(
            value, edit.label, metadata if self.features.edit_metadata else None
        )
        try:
            async with asyncio.timeout(ASK_SECONDS):
                result = await self.server.workspace_apply_edit_async(params)
        except (JsonRpcException, TimeoutError) as error:
            return ApplyAnswer(False, str(error) or "declined")
        return ApplyAnswer(bool(result.applied), result.failure_reason or "declined")

    async def configuration(self, roots: tuple[str, ...]) -> tuple[dict[str, Any], ...] | None:
        """``workspace/configuration``, one item a root."""
        if not self.features.configuration:
            return None
        items = [types.ConfigurationItem(from_fs_path(root), "kernelLsp") for root in roots]
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                answers = await self.server.workspace_configuration_async(
                    types.ConfigurationParams(items)
                )
        except (JsonRpcException, TimeoutError) as error:
            log.warning("the editor told no settings: %s", error)
            return None
        return tuple(_settings(answer) for answer in answers or ())

    async def show_document(self, path: str) -> bool:
        """``window/showDocument``; editors that show reviews themselves are left alone."""
        if self.features.review:
            return True
        return await self._show(from_fs_path(path), None)

    async def show_listing(self, place: ListingPlace) -> bool:
        """A virtual document where the client asked for such, else the file."""
        uri = place.uri if self.shows_texts else from_fs_path(str(place.path))
        return await self._show(uri, place.row)

    def command_begin(self, token: int | str, title: str) -> None:
        """Progress of one command on a token that the client gave."""
        value = types.WorkDoneProgressBegin(title=title)
        self.server.protocol.notify(types.PROGRESS, types.ProgressParams(token, value))

    def command_end(self, token: int | str) -> None:
        """Its end; before the answer, which ends the token's life."""
        value = types.WorkDoneProgressEnd()
        self.server.protocol.notify(types.PROGRESS, types.ProgressParams(token, value))

    async def _begin(self, token: str, title: str) -> None:
        params = types.WorkDoneProgressCreateParams(token)
        try:
            await self.server.window_work_done_progress_create_async(params)
        except JsonRpcException as error:
            log.info("the editor shows no progress: %s", error)
            self._bars.pop(token, None)
            return
        bar = self._bars.get(token)
        if bar is None or bar.closed:
            return  # ended while the editor was asked
        bar.open = True
        value = types.WorkDoneProgressBegin(
            title=title, cancellable=True, message=bar.message, percentage=bar.percentage
        )
        self._progress(token, value)

    def _progress(self, token: str, value: Any) -> None:
        self.server.protocol.notify(types.PROGRESS, types.ProgressParams(token, value))

    async def _show(self, uri: str | None, row: int | None) -> bool:
        if not self.features.show_document or uri is None:
            return False
        start = types.Position(row or 0, 0)
        selection = types.Range(start, start) if row is not None else None
        params = types.ShowDocumentParams(uri=uri, take_focus=True, selection=selection)
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                answer = await self.server.window_show_document_async(params)
        except (JsonRpcException, TimeoutError):
            return False
        return bool(answer.success)


async def _quietly(request: Awaitable[Any], complaint: str) -> None:
    """A refusal of something optional is noted, not raised."""
    try:
        await request
    except JsonRpcException as error:
        log.info("%s: %s", complaint, error)


def _settings(answer: Any) -> dict[str, Any]:
    return dict(cast("Mapping[str, Any]", answer)) if isinstance(answer, Mapping) else {}
