"""``textDocument/codeAction``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from kernel_lsp.features.kinds import KINDS

if TYPE_CHECKING:
    from kernel_lsp.server import KernelServer

METHOD = types.TEXT_DOCUMENT_CODE_ACTION
OPTIONS = types.CodeActionOptions(code_action_kinds=list(KINDS), resolve_provider=True)


async def handle(ls: KernelServer, params: types.CodeActionParams) -> list[types.CodeAction]:
    """Answered from the newest snapshot; waits only for the first one of a document."""
    from kernel_lsp.features.actions import actions
    from kernel_lsp.protocol import to_lsp

    session, uri = ls.session, params.text_document.uri
    snapshot = await session.analyser.first(uri)
    document = session.documents.get(uri)
    if snapshot is None or document is None:
        return []
    first = document.line_then(params.range.start.line, snapshot.version)
    last = document.line_then(params.range.end.line, snapshot.version)
    only = tuple(str(getattr(kind, "value", kind)) for kind in params.context.only or ())
    found = actions(session.state(snapshot), first, last, only)
    shown = tuple(params.context.diagnostics)
    converted = [to_lsp.action(action, ls.editor.features, shown) for action in found]
    return [action for action in converted if action is not None]
