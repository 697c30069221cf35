"""``workspace/didChangeWorkspaceFolders``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lsprotocol import types

from kernel_lsp.protocol import from_lsp

if TYPE_CHECKING:
    from kernel_lsp.server import KernelServer

METHOD = types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS


def handle(ls: KernelServer, params: types.DidChangeWorkspaceFoldersParams) -> None:
    """Folders decide roots, and roots decide settings and trust."""
    added = {Path(from_lsp.path_of(folder.uri)) for folder in params.event.added}
    removed = {Path(from_lsp.path_of(folder.uri)) for folder in params.event.removed}
    ls.session.workspace.change_folders(added, removed)
    ls.session.spawn(ls.session.read_settings())
