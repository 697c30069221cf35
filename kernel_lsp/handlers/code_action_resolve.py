"""``codeAction/resolve``: the edit of a known candidate. Never starts a search."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from kernel_lsp.protocol.base import REQUEST_FAILED

if TYPE_CHECKING:
    from kernel_lsp.server import KernelServer

METHOD = types.CODE_ACTION_RESOLVE


async def handle(ls: KernelServer, params: types.CodeAction) -> types.CodeAction:
    """The action with its edit; RequestFailed with the reason if the text no longer fits."""
    from kernel_lsp.commands import edit_for
    from kernel_lsp.edits import EditRefused
    from kernel_lsp.protocol import to_lsp

    data: Any = params.data
    if not isinstance(data, dict) or params.edit is not None:
        return params
    try:
        edit = await edit_for(ls.session, data)  # pyright: ignore[reportUnknownArgumentType]
    except EditRefused as refusal:
        raise JsonRpcException(str(refusal), REQUEST_FAILED) from refusal
    version = edit.snapshot.version
    encoding = ls.session.encoding
    return attrs.evolve(
        params, edit=to_lsp.workspace_edit(edit, version, encoding, ls.editor.features)
    )
