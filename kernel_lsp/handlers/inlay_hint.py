"""``textDocument/inlayHint``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

if TYPE_CHECKING:
    from kernel_lsp.server import KernelServer

METHOD = types.TEXT_DOCUMENT_INLAY_HINT
OPTIONS = types.InlayHintOptions()


async def handle(ls: KernelServer, params: types.InlayHintParams) -> list[types.InlayHint]:
    """Hints of the newest snapshot, moved by the edits since; none unless the user wants them."""
    from kernel_lsp.features.inlay_hints import inlay_hints
    from kernel_lsp.protocol import to_lsp

    session, uri = ls.session, params.text_document.uri
    snapshot = await session.analyser.first(uri)
    document = session.documents.get(uri)
    if snapshot is None or document is None:
        return []
    first = document.line_then(params.range.start.line, snapshot.version)
    last = document.line_then(params.range.end.line, snapshot.version)
    locator = to_lsp.Locator(snapshot, document, session.encoding)
    found = inlay_hints(session.state(snapshot), first, last)
    return [to_lsp.inlay_hint(hint, locator) for hint in found]
