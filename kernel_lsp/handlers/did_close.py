"""``textDocument/didClose``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

if TYPE_CHECKING:
    from kernel_lsp.server import KernelServer

METHOD = types.TEXT_DOCUMENT_DID_CLOSE


def handle(ls: KernelServer, params: types.DidCloseTextDocumentParams) -> None:
    """Forget the document. A run of its kernel goes on."""
    ls.session.close_document(params.text_document.uri)
