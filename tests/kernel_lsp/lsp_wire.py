"""A raw LSP connection to a real server process: sends anything, records everything."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

SERVER = Path(__file__).with_name("serve_fake.py")
PATIENCE = 60.0
"""Longest wait for something that must come; only a busy machine needs more than a second."""
CACHE = Path(tempfile.gettempdir()) / f"kernel-lsp-tests-{os.getuid()}"
"""Shared by all servers of the tests, as a user's servers share theirs."""

CAPABILITIES = {
    "window": {"workDoneProgress": True, "showDocument": {"support": True}},
    "workspace": {
        "applyEdit": True,
        "workspaceEdit": {"documentChanges": True},
        "codeLens": {"refreshSupport": True},
    },
    "textDocument": {
        "codeAction": {
            "isPreferredSupport": True,
            "disabledSupport": True,
            "dataSupport": True,
            "resolveSupport": {"properties": ["edit"]},
        },
        "publishDiagnostics": {"versionSupport": True, "dataSupport": True},
    },
}


class Wire:
    """One server process. ``traffic`` is ``(direction, message)`` in order, ``in`` and ``out``."""

    def __init__(
        self,
        folder: Path,
        scenario: str = "improve",
        trusted: bool | None = True,
        settings: dict | None = None,
        capabilities: dict | None = None,
        options: dict | None = None,
        facts: str | None = None,
        program: list[str] | None = None,
    ) -> None:
        """``facts`` is the scenario of the facts host; None: nothing is compiled.

        ``program`` is started instead of the server with fake hosts.
        """
        self.folder, self.scenario, self.trusted = folder, scenario, trusted
        self.settings = settings or {}
        self.options = options or {}
        if program is not None:
            pass
        elif facts is None:
            self.settings = {"compile": "off", **self.settings}
        else:
            self.options = {
                "FAKE_FACTS": facts,
                "FAKE_LOG": str(folder / "facts.log"),
                **self.options,
            }
        self.capabilities = capabilities if capabilities is not None else CAPABILITIES
        environment = dict(
            os.environ,
            XDG_STATE_HOME=str(folder / "state"),
            XDG_CONFIG_HOME=str(folder / "config"),
            XDG_CACHE_HOME=str(CACHE),
        )
        self.process = subprocess.Popen(
            program or [sys.executable, str(SERVER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=(folder / "stderr.txt").open("ab"),
            env=environment,
            bufsize=0,
        )
        self.traffic: list[tuple[str, dict]] = []
        self.junk = b""
        """Bytes on stdout outside frames; must stay empty."""
        self.refuse_progress = False
        self.on_edit = None
        """Called with the parameters of ``workspace/applyEdit``; gives the result or None."""
        self._seen: list[dict] = []
        self._queue: queue.Queue[dict | None] = queue.Queue()
        self._ids = itertools.count(1)
        self._ended = False
        threading.Thread(target=self._read, daemon=True).start()

    # Sending

    def raw(self, data: bytes) -> None:
        """Bytes as they are."""
        self.process.stdin.write(data)

    def send(self, message: dict) -> None:
        """One message in a frame."""
        message = {"jsonrpc": "2.0", **message}
        body = json.dumps(message).encode()
        self.traffic.append(("in", message))
        self.raw(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def notify(self, method: str, params: dict | None = None) -> None:
        self.send({"method": method, "params": params or {}})

    def request(self, method: str, params=None, patience: float = PATIENCE) -> dict:
        """The whole response."""
        return self.response(self.ask(method, params), patience)

    def ask(self, method: str, params=None) -> int:
        """Send a request; its id."""
        number = next(self._ids)
        self.send({"id": number, "method": method, "params": {} if params is None else params})
        return number

    def response(self, number, patience: float = PATIENCE) -> dict:
        return self.wait(lambda m: m.get("id") == number and "method" not in m, patience)

    def command(self, name: str, **argument) -> dict:
        """The response of a server command."""
        return self.request(
            "workspace/executeCommand",
            {"command": f"kernelLsp.{name}", "arguments": [argument]},
        )

    # A session

    def initialize(self) -> dict:
        environment = {"FAKE_HOST": self.scenario, **self.options}
        worker = {"env": environment}
        answer = self.request(
            "initialize",
            {
                "processId": os.getpid(),
                "rootUri": self.folder.as_uri(),
                "capabilities": self.capabilities,
                "initializationOptions": {
                    "trusted": self.trusted,
                    "settings": {"worker": worker, **self.settings},
                },
            },
        )
        self.notify("initialized")
        return answer["result"]

    def open(self, text: str, name: str = "k.py", version: int = 1) -> str:
        """Open a document; its URI."""
        uri = (self.folder / name).as_uri()
        item = {"uri": uri, "languageId": "python", "version": version, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": item})
        return uri

    def change(self, uri: str, text: str, version: int) -> None:
        """Replace the whole text."""
        self.notify(
            "textDocument/didChange",
            {"textDocument": {"uri": uri, "version": version}, "contentChanges": [{"text": text}]},
        )

    def actions(self, uri: str, line: int = 6, only: list | None = None) -> dict[str, dict]:
        """Code actions at a line, by title."""
        place = {"line": line, "character": 0}
        context: dict = {"diagnostics": []}
        if only is not None:
            context["only"] = only
        answer = self.request(
            "textDocument/codeAction",
            {
                "textDocument": {"uri": uri},
                "range": {"start": place, "end": place},
                "context": context,
            },
        )
        return {action["title"]: action for action in answer["result"]}

    def save(self, uri: str) -> None:
        """The document was written to disk."""
        self.notify("textDocument/didSave", {"textDocument": {"uri": uri}})

    def hover(self, uri: str, line: int, character: int = 6) -> str | None:
        """The text of a hover."""
        place = {"line": line, "character": character}
        answer = self.request(
            "textDocument/hover", {"textDocument": {"uri": uri}, "position": place}
        )
        return answer["result"] and answer["result"]["contents"]["value"]

    def asked(self, uri: str) -> list[str]:
        """What the facts host was asked about a file: kernels and targets of each request."""
        log = self.folder / "facts.log"
        start = f"facts {uri.rsplit('/', 1)[1]} "
        lines = log.read_text().splitlines() if log.exists() else []
        return [line.removeprefix(start) for line in lines if line.startswith(start)]

    def lenses(self, uri: str) -> list[str]:
        answer = self.request("textDocument/codeLens", {"textDocument": {"uri": uri}})
        return [lens["command"]["title"] for lens in answer["result"]]

    def diagnostics(self, uri: str, wanted, patience: float = PATIENCE) -> list[dict]:
        """The first publish for ``uri`` that satisfies ``wanted(diagnostics)``."""

        def fits(message: dict) -> bool:
            params = message.get("params") or {}
            return (
                message.get("method") == "textDocument/publishDiagnostics"
                and params["uri"] == uri
                and wanted(params["diagnostics"])
            )

        return self.wait(fits, patience)["params"]["diagnostics"]

    def progress(self, kind: str, patience: float = PATIENCE) -> dict:
        """The first progress value of that kind not yet seen."""
        message = self.wait(
            lambda m: m.get("method") == "$/progress" and m["params"]["value"]["kind"] == kind,
            patience,
        )
        return message["params"]["value"]

    def run(self, uri: str, kernel: str = "double_kernel") -> dict:
        """Start a run and wait for its end; the ``end`` value."""
        answer = self.command("optimize", uri=uri, kernel=kernel)
        assert answer["result"]["state"] in ("queued", "baseline"), answer
        return self.progress("end")

    def wait(self, wanted, patience: float = PATIENCE) -> dict:
        """The first received message, not yet taken, that fits; others stay for later."""
        for message in self._seen:
            if wanted(message):
                self._seen.remove(message)
                return message
        end = time.monotonic() + patience
        while (left := end - time.monotonic()) > 0:
            try:
                message = self._queue.get(timeout=left)
            except queue.Empty:
                break
            if message is None:
                self._ended = True
                break
            if wanted(message):
                return message
            self._seen.append(message)
        raise AssertionError(f"nothing fits; last: {[str(m)[:300] for m in self._seen[-6:]]}")

    def drain(self) -> None:
        """Forget everything received so far."""
        self._seen.clear()
        while not self._queue.empty():
            if self._queue.get() is None:
                self._ended = True

    # The end

    def finish(self) -> None:
        """End the server, politely if it still listens."""
        if self.process.poll() is None:
            try:
                self.send({"id": "bye", "method": "shutdown", "params": None})
                self.send({"method": "exit"})
                self.process.wait(10)
            except (OSError, subprocess.TimeoutExpired):
                self.process.kill()
        self.process.wait()
        assert self.junk == b"", f"bytes outside frames: {self.junk[:200]!r}"

    def _read(self) -> None:
        stream = self.process.stdout
        buffer = b""
        while data := os.read(stream.fileno(), 2**16):
            buffer += data
            while True:
                head, mark, rest = buffer.partition(b"\r\n\r\n")
                if not mark:
                    break
                start, _, length = head.rpartition(b"Content-Length: ")
                self.junk += start
                if len(rest) < int(length):
                    break
                body, buffer = rest[: int(length)], rest[int(length) :]
                self._take(json.loads(body))
        self.junk += buffer
        self._queue.put(None)

    def _take(self, message: dict) -> None:
        self.traffic.append(("out", message))
        if "id" in message and "method" in message:
            self._answer(message)
        self._queue.put(message)

    def _answer(self, message: dict) -> None:
        method = message["method"]
        if method == "window/workDoneProgress/create" and self.refuse_progress:
            error = {"code": -32803, "message": "no progress here"}
            self.send({"id": message["id"], "error": error})
            return
        result = None
        if method == "workspace/applyEdit":
            if self.on_edit is None:
                return
            result = self.on_edit(message["params"])
            if result is None:
                error = {"code": -32603, "message": "the user said no"}
                self.send({"id": message["id"], "error": error})
                return
        elif method == "window/showDocument":
            result = {"success": True}
        elif method == "workspace/configuration":
            result = [None for _ in message["params"]["items"]]
        with contextlib.suppress(OSError, ValueError):  # the server may have ended
            self.send({"id": message["id"], "result": result})


def apply_text(text: str, edits: list[dict]) -> str:
    """Apply LSP edits in UTF-16 columns to an ASCII-only or BMP text."""
    lines = text.split("\n")
    starts = list(itertools.accumulate((len(line) + 1 for line in lines), initial=0))

    def offset(place: dict) -> int:
        return min(starts[place["line"]] + place["character"], len(text))

    for edit in sorted(edits, key=lambda e: offset(e["range"]["start"]), reverse=True):
        start, end = offset(edit["range"]["start"]), offset(edit["range"]["end"])
        text = text[:start] + edit["newText"] + text[end:]
    return text


def alive(pid: int) -> bool:
    """False also for a zombie, which holds nothing any more."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rsplit(")", 1)[1].split()[0] != "Z"
