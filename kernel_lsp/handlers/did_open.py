"""``textDocument/didOpen``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from kernel_lsp.protocol import from_lsp

if TYPE_CHECKING:
    from kernel_lsp.server import KernelServer

METHOD = types.TEXT_DOCUMENT_DID_OPEN


def handle(ls: KernelServer, params: types.DidOpenTextDocumentParams) -> None:
    """Keep the document and analyse it beside the message path."""
    item = params.text_document
    if from_lsp.is_kernel_file(item.uri, item.language_id):
        ls.session.open(item.uri, from_lsp.path_of(item.uri), item.version, item.text)
