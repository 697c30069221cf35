"""Every handler; a new one is one file and one line here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel_lsp.handlers import (
    code_action,
    code_action_resolve,
    code_lens,
    did_change,
    did_change_configuration,
    did_change_folders,
    did_close,
    did_open,
    did_save,
    execute_command,
    hover,
    initialize,
    initialized,
    inlay_hint,
    progress_cancel,
    set_trust,
    text_content,
)

if TYPE_CHECKING:
    from kernel_lsp.server import KernelServer

HANDLERS = (
    initialize,
    initialized,
    did_open,
    did_change,
    did_save,
    did_close,
    did_change_configuration,
    did_change_folders,
    code_action,
    code_action_resolve,
    code_lens,
    hover,
    inlay_hint,
    text_content,
    progress_cancel,
    set_trust,
)


def register_all(server: KernelServer) -> None:
    """Register every handler and command."""
    for handler in HANDLERS:
        options = getattr(handler, "OPTIONS", None)
        server.feature(handler.METHOD, options)(handler.handle)
    execute_command.register(server)
