"""The server process: standard input and output, the loop, and the end of everything.

File descriptor 1 belongs to frames: it is duplicated at the start and then points at standard
error, so that no ``print``, C library or child can break the stream.

Nothing of the session is imported until ``initialize`` is answered: an editor waits for that.
"""

from __future__ import annotations

import asyncio
import logging
import logging.handlers
import os
import sys
import threading
import time
from typing import TYPE_CHECKING, NoReturn

from lsprotocol import types
from pygls.exceptions import FeatureRequestError
from pygls.lsp.server import LanguageServer

from kernel_lsp.handlers import initialize
from kernel_lsp.handlers.registry import register_all
from kernel_lsp.latency import Latencies
from kernel_lsp.places import Places, find_places
from kernel_lsp.protocol.base import KernelProtocol
from kernel_lsp.protocol.editor import Editor
from kernel_lsp.protocol.transport import FrameWriter, read_frames

if TYPE_CHECKING:
    from kernel_lsp.session import Session

log = logging.getLogger(__name__)

VERSION = "0.1.0"

SWITCH_SECONDS = 0.0005
"""The analysis thread holds the interpreter lock while it parses. Python's 5 ms would be added to
a message at each hand-over between reader, loop and writer; half a millisecond keeps typing quick
and costs the analysis a few percent."""

PARENT_SECONDS = 1.0
"""How often the editor's process is looked for."""

LAST_SECONDS = 3.0
"""From the wish to end to the end, whatever hangs."""

QUIET_SECONDS = 60.0
"""At most one error message in this time; a mistake of ours must not pop up at each key."""


class KernelServer(LanguageServer):
    """One server for one editor."""

    protocol: KernelProtocol  # pyright: ignore[reportIncompatibleVariableOverride]

    def __init__(self, places: Places, command: tuple[str, ...] | None) -> None:
        super().__init__(  # pyright: ignore[reportUnknownMemberType]
            "kernel-lsp", VERSION, protocol_cls=KernelProtocol
        )
        self.editor = Editor(self)
        self.latencies = Latencies()
        self.greeting: types.InitializeParams | None = None
        """What the editor said of itself."""
        self._places, self._command = places, command
        self._session: Session | None = None
        self._watch: asyncio.Task[None] | None = None
        self._exit: asyncio.Future[int] | None = None
        self._reported = -QUIET_SECONDS
        self._parent = os.getppid()
        register_all(self)

    @property
    def session(self) -> Session:
        """Everything known; made at the first use, soon after ``initialize`` is answered."""
        if self._session is None:
            self._session = _make_session(self, self._places, self._command)
            if self.greeting is not None:
                initialize.introduce(self, self._session, self.greeting)
        return self._session

    async def run(self, descriptor: int, writer: FrameWriter) -> int:
        """Serve until ``exit``, the end of input or the death of the editor; the exit status."""
        loop = asyncio.get_running_loop()
        self._exit = loop.create_future()
        self.protocol.set_writer(writer)
        read_frames(
            descriptor,
            lambda body: _call_soon(loop, self.protocol.receive, body),
            lambda: _call_soon(loop, self.stop, 1),
        )
        status = await self._exit
        threading.Timer(LAST_SECONDS, os._exit, (status,)).start()
        if self._session is not None:
            await self._session.close()
        await self.protocol.wait_for_farewell()
        return status

    def stop(self, status: int) -> None:
        """End the process, with its children; the first status counts."""
        if self._exit is not None and not self._exit.done():
            self._exit.set_result(0 if self.protocol.shut_down else status)

    def watch_parent(self, process_id: int | None) -> None:
        """End when the editor dies without closing our input.

        An editor in another process namespace cannot be seen and so is not watched.
        """
        visible = process_id is not None and _alive(process_id)
        watch = self._watch_parent(process_id if visible else None)
        self._watch = asyncio.get_running_loop().create_task(watch)

    def report_server_error(self, error: Exception, source: object) -> None:
        """Log every mistake, show one a minute; requests have their own error answer."""
        log.error("%s", error, exc_info=error)
        now = time.monotonic()
        if source is FeatureRequestError or now - self._reported < QUIET_SECONDS:
            return
        self._reported = now
        text = f"kernel-lsp made a mistake ({error}). Show log: {self._places.log}"
        self.window_show_message(types.ShowMessageParams(types.MessageType.Error, text))

    async def _watch_parent(self, process_id: int | None) -> None:
        while os.getppid() == self._parent and (process_id is None or _alive(process_id)):
            await asyncio.sleep(PARENT_SECONDS)
        log.warning("the editor is gone")
        self.stop(1)


def serve(log_level: str = "INFO", command: tuple[str, ...] | None = None) -> NoReturn:
    """Serve this process's standard input and output; ends the process.

    ``command`` starts a search host; None is this installation's.
    """
    frames = os.dup(0)
    stream = os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    sys.setswitchinterval(SWITCH_SECONDS)
    places = find_places()
    _start_log(places, log_level)
    server = KernelServer(places, command)
    status = 1
    try:
        status = asyncio.run(server.run(frames, FrameWriter(stream)))
    except KeyboardInterrupt:
        status = 130
    finally:
        logging.shutdown()
        # Threads may be in the middle of a parse or blocked on a read: nothing is worth waiting
        # for once every child is gone.
        os._exit(status)


def _make_session(server: KernelServer, places: Places, command: tuple[str, ...] | None) -> Session:
    from kernel_lsp.facts.host import FactsLauncher, facts_command
    from kernel_lsp.host import HostLauncher, host_command
    from kernel_lsp.session import Session
    from kernel_lsp.trust import TrustStore
    from kernel_lsp.workspace import Workspace

    return Session(
        client=server.editor,
        places=places,
        workspace=Workspace(places.user_settings),
        trust=TrustStore.load(places.trust),
        launcher=HostLauncher(command or host_command(), str(places.state)),
        facts_launcher=FactsLauncher(
            (*command, "facts") if command else facts_command(), str(places.state)
        ),
        latencies=server.latencies,
    )


def _start_log(places: Places, level: str) -> None:
    handlers: list[logging.Handler] = []
    try:
        places.log.parent.mkdir(parents=True, exist_ok=True)
        handlers.append(
            logging.handlers.RotatingFileHandler(
                places.log, maxBytes=2 * 2**20, backupCount=4, encoding="utf-8", delay=True
            )
        )
    except OSError:
        handlers.append(logging.StreamHandler(sys.stderr))
    form = "%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"
    logging.basicConfig(level=level.upper(), handlers=handlers, format=form)
    # At INFO pygls formats every outgoing body, and bodies hold the user's source.
    logging.getLogger("pygls").setLevel(logging.WARNING)


def _call_soon(loop: asyncio.AbstractEventLoop, call: object, *arguments: object) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(call, *arguments)  # pyright: ignore


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
