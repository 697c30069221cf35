"""``initialized``: ask for settings and get the parser ready."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

if TYPE_CHECKING:
    from kernel_lsp.server import KernelServer

METHOD = types.INITIALIZED


def handle(ls: KernelServer, params: types.InitializedParams) -> None:
    """Everything that ``initialize`` should not wait for."""
    session = ls.session
    session.analyser.warm()
    session.tell_status()
    session.spawn(session.read_settings())
    if ls.editor.features.watch_configuration:
        session.spawn(_watch_settings(ls))
    if ls.editor.features.text_content:
        session.spawn(_show_texts(ls))


async def _watch_settings(ls: KernelServer) -> None:
    registration = types.Registration(
        id="kernelLsp.settings",
        method=types.WORKSPACE_DID_CHANGE_CONFIGURATION,
        register_options={"section": "kernelLsp"},
    )
    await ls.client_register_capability_async(types.RegistrationParams([registration]))


async def _show_texts(ls: KernelServer) -> None:
    """Offer machine code as documents without files."""
    from kernel_lsp.listings import SCHEME

    registration = types.Registration(
        id="kernelLsp.listings",
        method=types.WORKSPACE_TEXT_DOCUMENT_CONTENT,
        register_options={"schemes": [SCHEME]},
    )
    await ls.client_register_capability_async(types.RegistrationParams([registration]))
    ls.editor.shows_texts = True
