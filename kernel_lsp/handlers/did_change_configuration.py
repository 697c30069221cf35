"""``workspace/didChangeConfiguration``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from lsprotocol import types

if TYPE_CHECKING:
    from kernel_lsp.server import KernelServer

METHOD = types.WORKSPACE_DID_CHANGE_CONFIGURATION


def handle(ls: KernelServer, params: types.DidChangeConfigurationParams) -> None:
    """Take pushed settings, or ask anew where the client can be asked.

    A run that has started keeps the settings it started with.
    """
    session = ls.session
    session.workspace.forget_settings()
    pushed: Any = params.settings
    if isinstance(pushed, Mapping):
        own: Any = cast("Mapping[str, Any]", pushed).get("kernelLsp")
        if isinstance(own, Mapping):
            session.workspace.set_fallback(cast("Mapping[str, Any]", own))
    session.spawn(session.read_settings())
