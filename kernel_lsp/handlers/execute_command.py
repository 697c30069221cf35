"""``workspace/executeCommand``: one wrapper for every command."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from pygls.exceptions import JsonRpcException

from kernel_lsp.commands import COMMANDS, Command, CommandRefused
from kernel_lsp.edits import EditRefused
from kernel_lsp.protocol.base import REQUEST_FAILED, WORK_TOKEN

if TYPE_CHECKING:
    from kernel_lsp.server import KernelServer


def register(server: KernelServer) -> None:
    """Advertise every command."""
    for command in COMMANDS:
        server.command(command.name)(_wrapped(server, command))


def _wrapped(
    server: KernelServer, command: Command
) -> Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]:
    async def run(argument: dict[str, Any]) -> dict[str, Any]:
        token = WORK_TOKEN.get()
        if token is not None:
            server.editor.command_begin(token, command.name)
        try:
            return await command.run(server.session, argument)
        except (CommandRefused, EditRefused) as refusal:
            raise JsonRpcException(str(refusal), REQUEST_FAILED) from refusal
        finally:
            if token is not None:
                server.editor.command_end(token)

    return run
