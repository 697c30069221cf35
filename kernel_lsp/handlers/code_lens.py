"""``textDocument/codeLens``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

if TYPE_CHECKING:
    from kernel_lsp.server import KernelServer

METHOD = types.TEXT_DOCUMENT_CODE_LENS
OPTIONS = types.CodeLensOptions(resolve_provider=False)


async def handle(ls: KernelServer, params: types.CodeLensParams) -> list[types.CodeLens]:
    """Lenses of the newest snapshot, moved by the edits since."""
    from kernel_lsp.features.lenses import lenses
    from kernel_lsp.protocol import to_lsp

    session, uri = ls.session, params.text_document.uri
    snapshot = await session.analyser.first(uri)
    document = session.documents.get(uri)
    if snapshot is None or document is None:
        return []
    locator = to_lsp.Locator(snapshot, document, session.encoding)
    return [to_lsp.lens(item, locator) for item in lenses(session.state(snapshot))]
