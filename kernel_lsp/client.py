"""The editor as the session sees it; ``protocol/editor.py`` implements it over LSP."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any, Protocol

from kernel_lsp.features.diagnostics import Diagnostic
from kernel_lsp.listings import ListingPlace
from kernel_lsp.snapshot import Snapshot
from search_engine.domain.candidate import TextEdit


class Level(enum.Enum):
    """Importance of a message, as the protocol numbers it."""

    ERROR = 1
    WARNING = 2
    INFO = 3


@dataclass(frozen=True, slots=True)
class FileEdit:
    """Edits of one version of one file, in bytes of ``snapshot.text``."""

    snapshot: Snapshot
    edits: tuple[TextEdit, ...]
    label: str
    expected_hash: str | None
    """Hash of the unit once the edit is in the buffer."""
    name: str


@dataclass(frozen=True, slots=True)
class ApplyAnswer:
    """What the editor answered to an edit. ``applied`` proves nothing about the buffer."""

    applied: bool
    reason: str


class Client(Protocol):
    """What the server can ask of an editor. Things that it lacks are silently left out."""

    @property
    def draws_runs(self) -> bool:
        """The editor shows runs itself, from ``kernelLsp/runUpdate``."""
        ...

    def publish(self, snapshot: Snapshot, diagnostics: tuple[Diagnostic, ...]) -> None:
        """Show the diagnostics of a file."""
        ...

    def clear(self, uri: str) -> None:
        """Remove the diagnostics of a closed file."""
        ...

    def refresh_lenses(self) -> None:
        """Ask for the lenses again."""
        ...

    def refresh_hints(self) -> None:
        """Ask for the inlay hints again."""
        ...

    def show(self, level: Level, text: str) -> None:
        """Show a message that does not take the keyboard."""
        ...

    def progress_begin(self, token: str, title: str, message: str) -> None:
        """Start a progress that can be cancelled."""
        ...

    def progress_report(self, token: str, percentage: int, message: str) -> None:
        """Move it; never backwards."""
        ...

    def progress_end(self, token: str, message: str) -> bool:
        """End it. False if the editor shows no progress, so that a message is needed."""
        ...

    def run_update(self, update: dict[str, Any]) -> None:
        """Tell an editor that draws runs itself."""
        ...

    def status(self, health: str, quiescent: bool, message: str) -> None:
        """State of the server for a status item."""
        ...

    async def apply(self, edit: FileEdit) -> ApplyAnswer:
        """Ask the editor to make an edit."""
        ...

    async def configuration(self, roots: tuple[str, ...]) -> tuple[dict[str, Any], ...] | None:
        """Settings per root; None if the editor cannot be asked."""
        ...

    async def show_document(self, path: str) -> bool:
        """Open a file for reading; False if the editor cannot."""
        ...

    async def show_listing(self, place: ListingPlace) -> bool:
        """Open machine code at its row; False if the editor cannot."""
        ...
