"""``textDocument/didChange``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from kernel_lsp.protocol import from_lsp

if TYPE_CHECKING:
    from kernel_lsp.server import KernelServer

METHOD = types.TEXT_DOCUMENT_DID_CHANGE


def handle(ls: KernelServer, params: types.DidChangeTextDocumentParams) -> None:
    """Apply the edits; everything slow happens later, in a thread."""
    item = params.text_document
    ls.session.change(item.uri, item.version, from_lsp.changes(params))
