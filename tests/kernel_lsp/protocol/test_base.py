"""Messages that no well-behaved client sends: each request still gets one answer."""

import asyncio
import json
import subprocess
import time
from types import SimpleNamespace

import pytest

from kernel_lsp.places import Places
from kernel_lsp.server import KernelServer


def error_of(answer):
    return answer["error"]["code"]


def test_requests_before_initialize_are_refused(wire):
    server = wire()
    assert error_of(server.request("textDocument/codeLens")) == -32002
    server.notify("textDocument/didOpen", {})  # must not break what follows
    assert "capabilities" in server.initialize()


def test_a_second_initialize_is_refused(wire):
    server = wire()
    server.initialize()
    assert error_of(server.request("initialize", {"capabilities": {}})) == -32600


def test_bad_json_is_answered_and_survived(wire):
    server = wire()
    server.initialize()
    server.raw(b"Content-Length: 9\r\n\r\n{not json")
    assert error_of(server.response(None)) == -32700
    server.raw(b"Content-Length: 7\r\n\r\n[1,2,3]")
    assert error_of(server.response(None)) == -32600
    assert server.request("kernelLsp/unknown")["error"]["code"] == -32601


def test_malformed_parameters_are_answered(wire):
    server = wire()
    server.initialize()
    assert error_of(server.request("textDocument/codeAction", {"textDocument": 3})) == -32602
    assert error_of(server.request("workspace/executeCommand", {"command": "no.such"})) == -32602
    answer = server.request(
        "workspace/executeCommand", {"command": "kernelLsp.optimize", "arguments": ["text"]}
    )
    assert error_of(answer) == -32602
    server.notify("textDocument/didChange", {"textDocument": []})
    assert server.command("report")["result"]["report"]


def test_strange_envelopes_are_answered(wire):
    server = wire()
    server.initialize()
    server.send({"id": {"a": 1}, "method": "shutdown"})
    assert error_of(server.response(None)) == -32600
    server.traffic.append(("in", {"id": 77, "method": "textDocument/codeLens"}))
    body = json.dumps({"id": 77, "method": "textDocument/codeLens"}).encode()
    server.raw(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    assert error_of(server.response(77)) == -32600
    server.send({"id": 78, "method": 5})
    assert error_of(server.response(78)) == -32600


def test_frames_may_be_split_and_joined(wire):
    server = wire(capabilities={})  # nothing is asked of us, so no answer cuts a frame in two
    server.initialize()
    parts = []
    for number in (101, 102):
        message = {"jsonrpc": "2.0", "id": number, "method": "kernelLsp/none", "params": {}}
        server.traffic.append(("in", message))
        body = json.dumps(message).encode()
        header = f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        parts.append(header.encode() + body)
    joined = b"".join(parts)
    for start in range(0, len(joined), 23):
        server.raw(joined[start : start + 23])
        time.sleep(0.001)
    assert error_of(server.response(101)) == -32601
    assert error_of(server.response(102)) == -32601


def test_one_id_used_twice_gets_two_answers(wire, kernel):
    server = wire()
    server.initialize()
    uri = server.open(kernel)
    for _ in range(2):
        params = {"textDocument": {"uri": uri}}
        server.send({"id": 500, "method": "textDocument/codeLens", "params": params})
    assert "result" in server.response(500)
    assert "result" in server.response(500)


def test_cancelling_unknown_and_finished_requests_is_harmless(wire):
    server = wire()
    server.initialize()
    server.command("report")
    server.notify("$/cancelRequest", {"id": 2})
    server.notify("$/cancelRequest", {"id": "never"})
    server.notify("window/workDoneProgress/cancel", {"token": "kernelLsp/r99"})
    server.notify("$/unknown")
    server.notify("textDocument/didChange", {
        "textDocument": {"uri": "file:///never/opened.py", "version": 1},
        "contentChanges": [{"text": "x"}],
    })  # fmt: skip
    assert server.command("report")["result"]["report"]
    assert not [m for way, m in server.traffic if m.get("method") == "window/showMessage"]


def test_after_shutdown_requests_are_refused_and_exit_is_clean(wire):
    server = wire()
    server.initialize()
    assert server.request("shutdown", None)["result"] is None
    assert error_of(server.request("textDocument/codeLens", {})) == -32600
    server.send({"method": "exit"})
    assert server.process.wait(10) == 0


def test_shutdown_and_exit_need_no_wait_between(wire):
    server = wire()
    server.initialize()
    number = server.ask("shutdown")
    server.send({"method": "exit"})
    assert server.response(number)["result"] is None
    assert server.process.wait(10) == 0


def test_exit_after_a_refused_shutdown_is_status_one(wire):
    server = wire()
    number = server.ask("shutdown")
    server.send({"method": "exit"})
    assert error_of(server.response(number)) == -32002
    assert server.process.wait(10) == 1


def test_exit_without_shutdown_is_status_one(wire):
    server = wire()
    server.initialize()
    server.send({"method": "exit"})
    assert server.process.wait(10) == 1


@pytest.mark.parametrize("moment", ["at once", "mid-frame", "initialized"])
def test_end_of_input_ends_the_process(wire, moment):
    server = wire()
    if moment == "mid-frame":
        server.raw(b"Content-Length: 500\r\n\r\n{")
    if moment == "initialized":
        server.initialize()
    server.process.stdin.close()
    assert server.process.wait(10) == 1


def test_the_death_of_the_editor_ends_the_process(wire):
    """The editor's process dies while something else keeps our input open."""
    editor = subprocess.Popen(["sleep", "600"])
    server = wire()
    server.request("initialize", {"processId": editor.pid, "capabilities": {}})
    server.notify("initialized")
    editor.kill()
    editor.wait()
    assert server.process.wait(10) == 1


def test_an_editor_in_another_process_namespace_is_not_missed(wire):
    """A process id that never existed here must not end the server."""
    server = wire()
    server.request("initialize", {"processId": 2**22 - 3, "capabilities": {}})
    server.notify("initialized")
    time.sleep(1.5)
    assert server.command("report")["result"]["report"]


def test_work_done_token_of_a_command_is_used(wire):
    server = wire()
    server.initialize()
    answer = server.request(
        "workspace/executeCommand",
        {"command": "kernelLsp.report", "arguments": [{}], "workDoneToken": "mine"},
    )
    assert answer["result"]["report"]
    kinds = [
        m["params"]["value"]["kind"]
        for _, m in server.traffic
        if m.get("method") == "$/progress" and m["params"]["token"] == "mine"
    ]
    assert kinds == ["begin", "end"]


async def test_nothing_is_kept_of_messages_that_were_handled(tmp_path, kernel):
    server = KernelServer(Places(tmp_path, tmp_path, tmp_path), None)
    written = []
    server.protocol.set_writer(SimpleNamespace(write=written.append, close=lambda: None))

    def send(method, params, **more):
        body = {"jsonrpc": "2.0", "method": method, "params": params, **more}
        server.protocol.receive(json.dumps(body).encode())

    send("initialize", {"capabilities": {}, "processId": None, "rootUri": None}, id=1)
    uri = (tmp_path / "k.py").as_uri()
    item = {"uri": uri, "languageId": "python", "version": 0, "text": kernel}
    send("textDocument/didOpen", {"textDocument": item})
    for version in range(1, 30):
        place = {"line": 0, "character": 0}
        change = {"range": {"start": place, "end": place}, "text": "#"}
        send(
            "textDocument/didChange",
            {"textDocument": {"uri": uri, "version": version}, "contentChanges": [change]},
        )
        send("textDocument/codeLens", {"textDocument": {"uri": uri}}, id=100 + version)
    send("textDocument/didSave", {"textDocument": {"uri": uri}})
    send("kernelLsp/setTrust", {"trusted": False})
    send("workspace/executeCommand", {"command": "kernelLsp.report", "arguments": [{}]}, id=2)
    end = time.monotonic() + 60
    while sum(b'"result"' in data for data in written) < 31 and time.monotonic() < end:
        await asyncio.sleep(0.02)
    assert server.session.documents[uri].version == 29
    assert server.protocol._request_futures == {}
    await server.session.close()
