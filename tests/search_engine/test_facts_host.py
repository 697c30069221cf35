"""The facts host: static findings at once, facts as they come, no process left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from fake_executor import text_of

from search_engine.domain.facts_message import (
    CancelRequest,
    Done,
    FactsHostAnswer,
    FactsHostRequest,
    FactsRequest,
    ListingFound,
    ListingRequest,
    StaticFindings,
    UnitFindings,
    answer_from_line,
    to_line,
)

ROOT = Path(__file__).parents[2]
SOFTMAX = ROOT / "examples" / "softmax.py"


class Host:
    def __init__(self, folder: Path) -> None:
        self.marker = f"MARK{os.getpid()}x{id(self)}"
        self.process = subprocess.Popen(
            [sys.executable, "-m", "search_engine.facts_host"], cwd=ROOT,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env={**os.environ, "XDG_CACHE_HOME": str(folder)},
        )  # fmt: skip

    def request(self, path: Path, text: str, **changes: object) -> FactsRequest:
        made = FactsRequest(
            "1", str(path), str(path.parent), text, ("sm_90",), sys.executable,
            env={"KERNEL_LSP_TEST_MARK": self.marker},
        )  # fmt: skip
        return replace(made, **changes)

    def say(self, *messages: FactsHostRequest | bytes) -> None:
        assert self.process.stdin is not None
        for item in messages:
            self.process.stdin.write(item if isinstance(item, bytes) else to_line(item))
        self.process.stdin.flush()

    def answers(self) -> Iterator[FactsHostAnswer]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            yield answer_from_line(line)

    def until_done(self, request: str = "1") -> list[FactsHostAnswer]:
        seen: list[FactsHostAnswer] = []
        for answer in self.answers():
            seen.append(answer)
            if isinstance(answer, Done) and answer.id == request:
                return seen
        raise AssertionError(f"ended before: {seen}")

    def workers(self) -> list[int]:
        """Workers that carry this host's mark in their environment."""
        found = []
        for process in psutil.process_iter():
            try:
                marked = process.environ().get("KERNEL_LSP_TEST_MARK") == self.marker
                if marked and any("boot.py" in part for part in process.cmdline()):
                    found.append(process.pid)
            except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
                continue
        return found

    def no_workers(self, seconds: float = 5.0) -> bool:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if not self.workers():
                return True
            time.sleep(0.05)
        return False


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    made = Host(tmp_path / "cache")
    yield made
    made.process.kill()
    made.process.wait()


def test_what_is_no_request_is_passed_over(host: Host, tmp_path: Path) -> None:
    path, text = tmp_path / "k.py", text_of("a", declaration="# nothing")
    quick = host.request(path, text, compile=False)
    host.say(
        b"\n", b"{}\n", b"no json\n", b'{"kind":"facts"}\n', CancelRequest("unknown"),
        quick,
        replace(quick, id="2", path=str(tmp_path / "k.cu")),
        replace(quick, id="3", targets=("sm_12",)),
    )  # fmt: skip
    found: dict[str, Done] = {}
    for answer in host.answers():
        if isinstance(answer, Done):
            found[answer.id] = answer
            if len(found) == 3:
                break
    assert found["1"] == Done("1")
    assert "kernels are found in .py files" in (found["2"].problem or "")
    assert "known targets are" in (found["3"].problem or "")


def test_static_findings_do_not_wait_for_facts_of_an_earlier_text(
    host: Host, tmp_path: Path
) -> None:
    path, text = tmp_path / "k.py", text_of("a", declaration="# nothing")
    slow = host.request(path, "import time\ntime.sleep(600)\n" + text)
    host.say(slow, replace(host.request(path, text), id="2"))
    seen = []
    for answer in host.answers():
        seen.append(answer)
        if answer.id == "2":
            break
    assert all(isinstance(item, StaticFindings) for item in seen)
    assert {finding.code for finding in seen[-1].findings} == {"KL803"}


def test_the_end_of_input_ends_the_host_and_its_workers(host: Host, tmp_path: Path) -> None:
    text = "import time\ntime.sleep(600)\n" + text_of("a")
    host.say(host.request(tmp_path / "k.py", text))
    deadline = time.monotonic() + 60
    while not host.workers() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert host.workers()
    assert host.process.stdin is not None
    host.process.stdin.close()
    assert host.process.wait(20) == 0
    assert host.no_workers()


@pytest.mark.slow
def test_examples_from_text_to_findings(host: Host, tmp_path: Path) -> None:
    text = SOFTMAX.read_text()
    path = tmp_path / "softmax.py"
    noisy = text.replace("import torch\n", "import torch\nprint('noise')\n", 1)
    host.say(host.request(path, noisy))
    first = host.until_done()
    assert [type(item) for item in first] == [StaticFindings, UnitFindings, Done]
    unit = first[1]
    assert isinstance(unit, UnitFindings)
    assert (unit.kernel, unit.target, unit.refusal) == ("softmax_kernel", "sm_90", None)
    summary = unit.summary
    assert summary is not None
    assert summary.registers > 0
    assert summary.grid == (8192, 1, 1)
    assert summary.bytes == 2 * 8192 * 8192 * 4
    rows = noisy.splitlines()
    for access in summary.accesses:
        assert f"tl.{access.kind.value}" in rows[access.line]
    assert all("softmax" in (item.kernel or "") for item in unit.findings)

    moved = "# a line more\n" + noisy
    host.say(replace(host.request(path, moved), id="2"))
    second = host.until_done("2")[1]
    assert isinstance(second, UnitFindings)
    assert [item.line - 1 for item in second.findings] == [item.line for item in unit.findings]
    assert second.summary is not None
    assert second.summary.registers == summary.registers

    line = next(i for i, row in enumerate(rows) if "tl.store" in row)
    host.say(ListingRequest("3", host.request(path, noisy), "softmax_kernel", "sm_90", line))
    listing = next(item for item in host.answers() if isinstance(item, ListingFound))
    assert listing.problem is None
    listed = listing.text.splitlines()
    assert len(listed) == len(listing.lines)
    assert listing.row is not None
    assert listing.lines[listing.row] == line

    matmul = (ROOT / "examples" / "matmul.py").read_text()
    undeclared = matmul.replace("# kernel-lsp: ", "# ")
    host.say(
        replace(host.request(tmp_path / "matmul.py", matmul), id="4"),
        replace(host.request(tmp_path / "matmul.py", undeclared), id="5"),
    )
    done: dict[str, UnitFindings] = {}
    ended: set[str] = set()
    for answer in host.answers():
        if isinstance(answer, UnitFindings):
            done[answer.id] = answer
        elif isinstance(answer, Done):
            ended.add(answer.id)
            if ended == {"4", "5"}:
                break
    declared, assumed = done["4"].summary, done["5"].summary
    assert declared is not None
    assert assumed is not None
    assert (declared.assumed, declared.grid) == (False, (128, 128, 1))
    assert (assumed.assumed, assumed.grid, assumed.bytes) == (True, None, None)
    assert min(declared.matrix_instructions, assumed.matrix_instructions) > 0
    assert done["5"].notes, "what was assumed is said"
    assert all(item.assumed for item in done["5"].findings)

    host.process.send_signal(signal.SIGTERM)
    assert host.process.wait(20) == 0
    assert host.no_workers()


def test_the_protocol_is_what_the_documentation_says(host: Host, tmp_path: Path) -> None:
    text = text_of("a", declaration="# nothing")
    request = {
        "kind": "facts", "id": "7", "path": str(tmp_path / "k.py"), "root": str(tmp_path),
        "text": text, "compile": False,
    }  # fmt: skip
    host.say(json.dumps(request).encode() + b"\n")
    assert host.process.stdout is not None
    lines = [json.loads(host.process.stdout.readline()) for _ in range(2)]
    assert [(line["kind"], line["id"]) for line in lines] == [("static", "7"), ("done", "7")]
