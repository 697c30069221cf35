"""``textDocument/hover``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from kernel_lsp.positions import index_at

if TYPE_CHECKING:
    from kernel_lsp.server import KernelServer

METHOD = types.TEXT_DOCUMENT_HOVER


async def handle(ls: KernelServer, params: types.HoverParams) -> types.Hover | None:
    """What is known about the kernel whose name or decorators are under the cursor."""
    from kernel_lsp.features.hover import hover
    from kernel_lsp.protocol import to_lsp

    session, uri = ls.session, params.text_document.uri
    snapshot = await session.analyser.first(uri)
    document = session.documents.get(uri)
    if snapshot is None or document is None:
        return None
    line = document.line_then(params.position.line, snapshot.version)
    if line >= len(snapshot.lines):
        return None
    text = snapshot.lines[line]
    column = index_at(text, params.position.character, session.encoding)
    offset = snapshot.starts[line] + len(text[:column].encode())
    found = hover(session.state(snapshot), offset)
    locator = to_lsp.Locator(snapshot, document, session.encoding)
    return to_lsp.hover(found, locator, ls.editor.features) if found else None
