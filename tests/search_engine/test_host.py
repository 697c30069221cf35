"""The search host: cancelled or killed, it leaves no process and loses nothing verified."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from search_engine.domain.codec import decode
from search_engine.domain.event import Finished, ImprovementFound, SearchEvent, StateChanged
from search_engine.domain.run import RunState

ROOT = Path(__file__).parents[2]
SOFTMAX = (ROOT / "examples" / "softmax.py").read_text()


class Host:
    def __init__(self, folder: Path, text: str = SOFTMAX, **changes: object) -> None:
        path = folder / "softmax.py"
        path.write_text(text)
        self.marker = f"MARK{os.getpid()}x{id(self)}"
        request = {
            "path": str(path), "text": text, "kernel": "softmax_kernel", "root": str(folder),
            "python": sys.executable, "env": {"KERNEL_LSP_TEST_MARK": self.marker},
            "effort": "quick", "archive": str(folder / "archive.sqlite"), **changes,
        }  # fmt: skip
        self.process = subprocess.Popen(
            [sys.executable, "-m", "search_engine.host"],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()

    def events(self) -> Iterator[SearchEvent]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            yield decode(SearchEvent, json.loads(line))

    def until(self, state: RunState) -> list[SearchEvent]:
        seen: list[SearchEvent] = []
        for event in self.events():
            seen.append(event)
            if isinstance(event, StateChanged) and event.state is state:
                return seen
        raise AssertionError(f"ended before {state}: {seen}")

    def say(self, message: dict[str, object]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def workers(self) -> list[int]:
        """Processes that carry this run's mark in their environment."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get("KERNEL_LSP_TEST_MARK") == self.marker:
                    found.append(process.pid)
            except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
                continue
        return found


def gone(host: Host, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not host.workers():
            return True
        time.sleep(0.05)
    return False


def test_killed_host_leaves_no_worker_and_its_run_is_resumed(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.until(RunState.SEARCHING)
    assert host.workers(), "the mark does not reach workers, so this test could not fail"
    host.process.send_signal(signal.SIGKILL)
    assert gone(host, 2.0), host.workers()

    again = Host(tmp_path)
    seen = list(again.events())
    assert any(isinstance(e, StateChanged) and "resuming" in e.detail for e in seen)
    assert isinstance(seen[-1], Finished)
    assert seen[-1].report.outcome.value == "unmeasured"
    assert any(isinstance(e, ImprovementFound) for e in seen)
    assert again.process.wait(10) == 0
    assert gone(again, 2.0)


@pytest.mark.parametrize("how", ["message", "end of input"])
def test_cancelled_host_ends_within_two_seconds(tmp_path: Path, how: str) -> None:
    host = Host(tmp_path)
    host.until(RunState.SEARCHING)
    if how == "message":
        host.say({"cancel": True})
    else:
        assert host.process.stdin is not None
        host.process.stdin.close()
    started = time.monotonic()
    host.process.wait(5)
    assert gone(host, max(0.1, 2.0 - (time.monotonic() - started)))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signalled_host_leaves_no_worker_and_no_scratch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    host = Host(tmp_path)
    host.until(RunState.BASELINE)
    assert list(temporary.glob("kernel-lsp-*"))
    host.process.send_signal(number)
    assert host.process.wait(10) == 0
    assert gone(host, 2.0)
    assert not list(temporary.glob("kernel-lsp-*"))


def test_bad_request_is_answered_with_a_report(tmp_path: Path) -> None:
    host = Host(tmp_path, kernel="nothing")
    (event,) = list(host.events())
    assert isinstance(event, Finished)
    assert "no kernel named nothing" in event.report.message
    assert host.process.wait(5) == 2
