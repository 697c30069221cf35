"""``workspace/executeCommand``: one wrapper for every command."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from pygls.exceptions import JsonRpcException

from kernel_lsp.command_names import COMMAND_NAMES
from kernel_lsp.protocol.base import REQUEST_FAILED, WORK_TOKEN

if TYPE_CHECKING:
    from kernel_lsp.server import KernelServer


def register(server: KernelServer) -> None:
    """Advertise every command."""
    for name in COMMAND_NAMES:
        server.command(name)(_wrapped(server, name))


def _wrapped(
    server: KernelServer, name: str
) -> Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]:
    async def run(argument: dict[str, Any]) -> dict[str, Any]:
        from kernel_lsp.commands import COMMANDS, CommandRefused
        from kernel_lsp.edits import EditRefused

        command = next(command for command in COMMANDS if command.name == name)
        token = WORK_TOKEN.get()
        if token is not None:
            server.editor.command_begin(token, name)
        try:
            return await command.run(server.session, argument)
        except (CommandRefused, EditRefused) as refusal:
            raise JsonRpcException(str(refusal), REQUEST_FAILED) from refusal
        finally:
            if token is not None:
                server.editor.command_end(token)

    return run
