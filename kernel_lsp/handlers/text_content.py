"""``workspace/textDocumentContent``: machine code for editors that show texts of a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from kernel_lsp.protocol.base import REQUEST_FAILED

if TYPE_CHECKING:
    from kernel_lsp.server import KernelServer

METHOD = types.WORKSPACE_TEXT_DOCUMENT_CONTENT


async def handle(
    ls: KernelServer, params: types.TextDocumentContentParams
) -> types.TextDocumentContentResult:
    """The text of a listing that was shown."""
    text = ls.session.listings.text(params.uri)
    if text is None:
        raise JsonRpcException("show the machine code again: it is not kept", REQUEST_FAILED)
    return types.TextDocumentContentResult(text)
