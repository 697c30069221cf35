"""LSP values to ours."""

from __future__ import annotations

from lsprotocol import types
from pygls.uris import to_fs_path, urlparse

from kernel_lsp.documents import Change
from kernel_lsp.positions import Position, Range

IGNORED_SCHEMES = frozenset(
    {"vscode-notebook-cell", "git", "output", "kernel-candidate", "kernel-listing"}
)
"""Notebooks are not supported yet; the others show text that is not the user's file."""


def path_of(uri: str) -> str:
    """File path of a URI; for other schemes its path part."""
    return to_fs_path(uri) or urlparse(uri)[2] or uri


def is_kernel_file(uri: str, language_id: str) -> bool:
    """True for Python documents that can hold kernels."""
    scheme = uri.split(":", 1)[0]
    return scheme not in IGNORED_SCHEMES and (
        language_id == "python" or path_of(uri).endswith(".py")
    )


def position(value: types.Position) -> Position:
    """A position in the client's encoding."""
    return Position(value.line, value.character)


def changes(params: types.DidChangeTextDocumentParams) -> tuple[Change, ...]:
    """Content changes, in order."""
    found: list[Change] = []
    for change in params.content_changes:
        if isinstance(change, types.TextDocumentContentChangePartial):
            area = Range(position(change.range.start), position(change.range.end))
            found.append(Change(area, change.text))
        else:
            found.append(Change(None, change.text))
    return tuple(found)
