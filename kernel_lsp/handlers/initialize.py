"""``initialize``: read what the client can do; start nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from lsprotocol import types

from kernel_lsp.positions import Encoding
from kernel_lsp.protocol import from_lsp
from kernel_lsp.protocol.capabilities import read_features

if TYPE_CHECKING:
    from kernel_lsp.server import KernelServer
    from kernel_lsp.session import Session

METHOD = types.INITIALIZE


def handle(ls: KernelServer, params: types.InitializeParams) -> None:
    """Read the capabilities; the session is made once this is answered."""
    ls.editor.features = read_features(params.capabilities)
    ls.greeting = params
    asyncio.get_running_loop().call_soon(lambda: ls.session)
    ls.watch_parent(params.process_id)


def introduce(ls: KernelServer, session: Session, params: types.InitializeParams) -> None:
    """Take encoding, folders and ``initializationOptions {trusted?, settings?}``."""
    encoding = ls.workspace.position_encoding or types.PositionEncodingKind.Utf16
    session.encoding = Encoding(getattr(encoding, "value", encoding))
    folders = [folder.uri for folder in params.workspace_folders or ()]
    if not folders and params.root_uri:
        folders = [params.root_uri]
    session.workspace.change_folders({Path(from_lsp.path_of(uri)) for uri in folders}, set())
    options: Any = params.initialization_options
    if isinstance(options, Mapping):
        _read_options(session, cast("Mapping[str, Any]", options))


def _read_options(session: Session, options: Mapping[str, Any]) -> None:
    trusted, settings = options.get("trusted"), options.get("settings")
    if isinstance(trusted, bool):
        session.trust.client = trusted
    if isinstance(settings, Mapping):
        session.workspace.set_fallback(cast("Mapping[str, Any]", settings))
