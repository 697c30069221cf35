"""The protocol subclass. It closes what pygls leaves open:

- every request gets exactly one answer, also one that is malformed, early, late or not JSON;
- the ``workDoneToken`` of a command reaches the command;
- documents are kept by the session, whose lines are those of the protocol;
- nothing is kept of a message that has been handled;
- ``exit``, end of input and a dead editor end the process and its children.
"""

# pygls types its tables loosely, and its built-in handlers as generators; it accepts coroutines and
# plain functions in their place.
# pyright: reportIncompatibleMethodOverride=false, reportIncompatibleVariableOverride=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import asyncio
import contextvars
import json
import logging
import time
from typing import TYPE_CHECKING, Any, cast

from lsprotocol import types
from pygls.exceptions import (
    FeatureNotificationError,
    JsonRpcException,
    JsonRpcInternalError,
    JsonRpcInvalidParams,
    JsonRpcInvalidRequest,
    JsonRpcParseError,
    JsonRpcServerNotInitialized,
)
from pygls.protocol import LanguageServerProtocol, lsp_method

from kernel_lsp.latency import SLOW_SECONDS

if TYPE_CHECKING:
    from kernel_lsp.server import KernelServer

log = logging.getLogger(__name__)

REQUEST_FAILED = -32803

WORK_TOKEN: contextvars.ContextVar[int | str | None] = contextvars.ContextVar(
    "work_token", default=None
)
"""Progress token that the client sent with the present command."""


class KernelProtocol(LanguageServerProtocol):
    """LSP with the holes closed."""

    _server: KernelServer

    def __init__(self, server: KernelServer, converter: Any) -> None:
        # pygls sets its own flag when the handler starts, which is after an ``exit`` that was sent
        # without waiting.
        self._leaving = False
        self._left = asyncio.Event()
        super().__init__(server, converter)
        self._initialized = False
        self._received: dict[int | str, tuple[str, float]] = {}

    def receive(self, body: bytes) -> None:
        """Handle one frame. Never raises."""
        started = time.perf_counter()
        method = "?"
        try:
            data: Any = json.loads(body)
            method = self._dispatch(data)
        except (ValueError, RecursionError):
            self._answer(None, JsonRpcParseError("the body is not JSON"))
        except Exception as error:
            log.exception("cannot handle %s", method)
            self._server.report_server_error(error, FeatureNotificationError)
        seconds = time.perf_counter() - started
        self._server.latencies.note(f"loop: {method}", seconds)
        if seconds > SLOW_SECONDS:
            log.warning("%s held the loop for %.0f ms", method, 1e3 * seconds)

    def _dispatch(self, data: Any) -> str:
        """Handle one decoded message; its method, for the log."""
        if not isinstance(data, dict):
            self._answer(None, JsonRpcInvalidRequest("a message is one object"))
            return "?"
        message = cast("dict[str, Any]", data)
        method = str(message.get("method", "response"))
        is_request = "id" in message and "method" in message
        problem = self._refusal(message)
        if problem is not None:
            if is_request:
                self._answer(message["id"], problem)
            return method
        try:
            structured = self.structure_message(message)
        except JsonRpcException as error:
            self._malformed(message, error)
            return method
        if is_request:
            self._received[message["id"]] = (message["method"], time.perf_counter())
            self._leaving = self._leaving or method == types.SHUTDOWN
        self.handle_message(cast("Any", structured))
        return method

    def _refusal(self, message: dict[str, Any]) -> JsonRpcException | None:
        """Why a message is not handled at all; None if it is."""
        method = message.get("method")
        if message.get("jsonrpc") != self.VERSION:
            return JsonRpcInvalidRequest('"jsonrpc" must be "2.0"')
        if method is None:
            return None if "id" in message else JsonRpcInvalidRequest("neither id nor method")
        if not isinstance(method, str) or not isinstance(message.get("id", 0), (int, str)):
            return JsonRpcInvalidRequest("the method must be text, the id a number or text")
        if method == types.EXIT:
            return None
        if self._leaving:
            return JsonRpcInvalidRequest("the server is shutting down")
        if method == types.INITIALIZE and self._initialized:
            return JsonRpcInvalidRequest("the server is initialized already")
        if method != types.INITIALIZE and not self._initialized:
            return JsonRpcServerNotInitialized("send initialize first")
        return None

    def _malformed(self, message: dict[str, Any], error: JsonRpcException) -> None:
        if "method" not in message:
            future = self._request_futures.pop(message["id"], None)
            if future is not None and not future.done():
                future.set_exception(error)
        elif "id" in message:
            self._answer(message["id"], JsonRpcInvalidParams(str(error) or "invalid parameters"))
        else:
            log.warning("malformed notification %s ignored", message["method"])

    def _execute_handler(
        self,
        msg_id: int | str,
        handler: Any,
        callback: Any,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
    ) -> None:
        # pygls keeps the future of each notification, and of each step of a handler, for ever.
        super()._execute_handler(msg_id, handler, callback, args, kwargs)
        future = self._request_futures.get(msg_id)
        if future is None:
            return
        if future.done():
            del self._request_futures[msg_id]
        else:
            future.add_done_callback(lambda _: self._request_futures.pop(msg_id, None))

    def _answer(self, message_id: Any, error: JsonRpcException) -> None:
        known = message_id if isinstance(message_id, (int, str)) else None
        failure = error.to_response_error()
        body = {"code": failure.code, "message": failure.message}
        self._send_data({"jsonrpc": self.VERSION, "id": known, "error": body})

    def _send_response(
        self, msg_id: int | str, result: Any = None, error: types.ResponseError | None = None
    ) -> None:
        method, started = self._received.pop(msg_id, ("?", 0.0))
        if method == types.INITIALIZE and error is None:
            self._initialized = True
        if started:
            self._server.latencies.note(method, time.perf_counter() - started)
        super()._send_response(msg_id, result, error)
        if method == types.SHUTDOWN:
            self._left.set()

    def _send_data(self, data: Any) -> None:
        # As pygls does it, but an editor that is gone ends the server instead of raising
        # somewhere in a callback.
        assert self.writer is not None
        try:
            body = json.dumps(data, default=self._serialize_message).encode()
        except (TypeError, ValueError) as error:
            log.exception("cannot encode a message")
            if isinstance(data, types.ResponseErrorMessage) or not hasattr(data, "id"):
                return
            self._answer(data.id, JsonRpcInternalError(str(error)))
            return
        header = f"Content-Length: {len(body)}\r\n\r\n".encode()
        try:
            self.writer.write(header + body)
        except (OSError, ValueError):
            self._server.stop(1)

    @lsp_method(types.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(self, params: types.DidOpenTextDocumentParams) -> Any:
        """Straight to our handler: the session keeps the documents."""
        yield self.fm.features[types.TEXT_DOCUMENT_DID_OPEN], (params,), None

    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(self, params: types.DidChangeTextDocumentParams) -> Any:
        """Straight to our handler."""
        yield self.fm.features[types.TEXT_DOCUMENT_DID_CHANGE], (params,), None

    @lsp_method(types.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(self, params: types.DidCloseTextDocumentParams) -> Any:
        """Straight to our handler."""
        yield self.fm.features[types.TEXT_DOCUMENT_DID_CLOSE], (params,), None

    @lsp_method(types.WORKSPACE_EXECUTE_COMMAND)
    async def lsp_workspace__execute_command(self, params: types.ExecuteCommandParams) -> Any:
        """Find the command and run it with its one argument object."""
        handler = self.fm.commands.get(params.command)
        if handler is None:
            raise JsonRpcInvalidParams(f"there is no command {params.command}")
        WORK_TOKEN.set(params.work_done_token)
        argument: Any = params.arguments[0] if params.arguments else {}
        if not isinstance(argument, dict):
            raise JsonRpcInvalidParams(f"{params.command} takes one object")
        return await handler(argument)

    @lsp_method(types.WINDOW_WORK_DONE_PROGRESS_CANCEL)
    def lsp_work_done_progress_cancel(self, params: types.WorkDoneProgressCancelParams) -> Any:
        """Straight to our handler; pygls' token table is not used, so it cannot grow."""
        yield self.fm.features[types.WINDOW_WORK_DONE_PROGRESS_CANCEL], (params,), None

    @lsp_method(types.SHUTDOWN)
    async def lsp_shutdown(self, *args: Any) -> None:
        """Refuse new work, end runs and their processes, then answer."""
        self._shutdown = True
        await self._server.session.close()
        for message_id, future in list(self._request_futures.items()):
            if message_id != self.msg_id and not future.done():
                future.cancel()

    @lsp_method(types.EXIT)
    def lsp_exit(self, *args: Any) -> None:
        """End the process; the status is 0 only after ``shutdown``, as the specification says."""
        self._server.stop(1)

    @property
    def shut_down(self) -> bool:
        """True once ``shutdown`` has been received, answered or not."""
        return self._leaving

    async def wait_for_farewell(self) -> None:
        """Return when a received ``shutdown`` has its answer."""
        if self._leaving:
            await self._left.wait()
