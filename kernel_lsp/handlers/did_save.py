"""``textDocument/didSave``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

if TYPE_CHECKING:
    from kernel_lsp.server import KernelServer

METHOD = types.TEXT_DOCUMENT_DID_SAVE
OPTIONS = types.SaveOptions(include_text=False)


def handle(ls: KernelServer, params: types.DidSaveTextDocumentParams) -> None:
    """Files of the same root may import what was saved."""
    ls.session.facts.saved(params.text_document.uri)
