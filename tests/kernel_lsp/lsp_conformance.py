"""Rules that every recorded conversation must keep."""

from __future__ import annotations

from collections import Counter


def check_traffic(traffic: list[tuple[str, dict]]) -> None:
    """All rules; raises AssertionError that names the broken one."""
    _check_responses(traffic)
    _check_progress(traffic)
    _check_diagnostics(traffic)
    _check_capabilities(traffic)
    _check_resolved(traffic)


NEEDED = {
    "window/workDoneProgress/create": "window.workDoneProgress",
    "window/showDocument": "window.showDocument.support",
    "workspace/applyEdit": "workspace.applyEdit",
    "workspace/configuration": "workspace.configuration",
    "workspace/codeLens/refresh": "workspace.codeLens.refreshSupport",
    "workspace/inlayHint/refresh": "workspace.inlayHint.refreshSupport",
    "experimental/serverStatus": "experimental.serverStatusNotification",
    "kernelLsp/runUpdate": "experimental.kernelLsp.runs",
}
"""What a server may send only to clients that say they take it."""

REGISTERED = {
    "workspace/textDocumentContent": "workspace.textDocumentContent.dynamicRegistration",
    "workspace/didChangeConfiguration": "workspace.didChangeConfiguration.dynamicRegistration",
}

OF_DIAGNOSTICS = {
    "relatedInformation": "relatedInformation",
    "codeDescription": "codeDescriptionSupport",
    "data": "dataSupport",
    "tags": "tagSupport",
}

OF_ACTIONS = {
    "disabled": "disabledSupport",
    "isPreferred": "isPreferredSupport",
    "data": "dataSupport",
}


def _check_capabilities(traffic: list[tuple[str, dict]]) -> None:
    started = [m for way, m in traffic if way == "in" and m.get("method") == "initialize"]
    params = started[0].get("params") if started else None
    if not isinstance(params, dict) or not isinstance(params.get("capabilities"), dict):
        return  # malformed on purpose
    capabilities = params["capabilities"]
    asked = {
        m["id"]: m.get("method")
        for way, m in traffic
        if way == "in" and isinstance(m.get("id"), (int, str))
    }
    for way, message in traffic:
        if way != "out":
            continue
        method = message.get("method")
        if method in NEEDED:
            assert _has(capabilities, NEEDED[method]), f"{method} was not advertised"
        if method == "client/registerCapability":
            for item in message["params"]["registrations"]:
                assert _has(capabilities, REGISTERED[item["method"]]), item["method"]
        if method == "textDocument/publishDiagnostics":
            _check_fields(
                message["params"]["diagnostics"], OF_DIAGNOSTICS, capabilities, "publishDiagnostics"
            )
            known = _has(capabilities, "textDocument.publishDiagnostics.versionSupport")
            assert known or message["params"].get("version") is None
        if method is None and asked.get(message.get("id")) == "textDocument/codeAction":
            _check_fields(message.get("result") or [], OF_ACTIONS, capabilities, "codeAction")


def _check_fields(items: list[dict], needed: dict, capabilities: dict, feature: str) -> None:
    for item in items:
        for name, support in needed.items():
            if item.get(name) is not None:
                path = f"textDocument.{feature}.{support}"
                assert _has(capabilities, path), f"{name} of {feature} was not advertised"


def _has(capabilities: dict, path: str) -> bool:
    value: object = capabilities
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return bool(value)


def _check_resolved(traffic: list[tuple[str, dict]]) -> None:
    """Resolving an action adds its edit and changes nothing else."""
    asked = {
        m["id"]: m["params"]
        for way, m in traffic
        if way == "in" and m.get("method") == "codeAction/resolve"
    }
    for way, message in traffic:
        result = message.get("result")
        if way == "out" and message.get("id") in asked and isinstance(result, dict):
            rest = {name: value for name, value in result.items() if name != "edit"}
            assert rest == asked[message["id"]], "resolve changed more than the edit"


def _check_responses(traffic: list[tuple[str, dict]]) -> None:
    asked = Counter(
        m["id"]
        for way, m in traffic
        if way == "in" and "method" in m and isinstance(m.get("id"), (int, str))
    )
    answered = Counter(
        m["id"] for way, m in traffic if way == "out" and "method" not in m and m["id"] is not None
    )
    for number, count in answered.items():
        assert count <= asked[number], f"request {number!r} was answered {count} times"


def _check_progress(traffic: list[tuple[str, dict]]) -> None:
    created, state, percentage = set(), {}, {}
    for way, message in traffic:
        if way == "in" and "result" in message:
            created.add(message["id"])
    creations = {
        m["params"]["token"]: m["id"]
        for way, m in traffic
        if way == "out" and m.get("method") == "window/workDoneProgress/create"
    }
    for way, message in traffic:
        if way != "out" or message.get("method") != "$/progress":
            continue
        token, value = message["params"]["token"], message["params"]["value"]
        kind = value["kind"]
        if token in creations:
            assert creations[token] in created, f"{token}: begun before the editor agreed"
        if kind == "begin":
            assert token not in state, f"{token}: begun twice"
        else:
            assert state.get(token) == "open", f"{token}: {kind} while {state.get(token)}"
        state[token] = "closed" if kind == "end" else "open"
        now = value.get("percentage")
        if now is not None:
            assert now >= percentage.get(token, 0), f"{token}: percentage fell to {now}"
            percentage[token] = now
        assert len(value.get("message") or "") <= 60 or kind == "end", value


def _check_diagnostics(traffic: list[tuple[str, dict]]) -> None:
    texts: dict[str, dict[int, str]] = {}
    versions: dict[str, int] = {}
    shown: dict[str, int] = {}
    closed: dict[str, int] = {}
    for way, message in traffic:
        params = message.get("params") or {}
        document = params.get("textDocument") if isinstance(params, dict) else None
        uri = document.get("uri") if isinstance(document, dict) else None
        if way == "in" and uri is None:
            continue  # malformed on purpose
        uri = uri or (params.get("uri") if isinstance(params, dict) else None)
        match message.get("method"):
            case "textDocument/didOpen":
                item = params["textDocument"]
                texts[uri] = {item["version"]: item["text"]}
                versions[uri] = item["version"]
                shown[uri] = -1
                closed.pop(uri, None)
            case "textDocument/didChange" if uri in versions:
                versions[uri] = params["textDocument"]["version"]
                changes = params["contentChanges"]
                if len(changes) == 1 and "range" not in changes[0]:
                    texts[uri][versions[uri]] = changes[0]["text"]
            case "textDocument/didClose":
                closed[uri] = 0
            case "textDocument/publishDiagnostics" if way == "out":
                if uri in closed:
                    assert not params["diagnostics"], "diagnostics for a closed file"
                    closed[uri] += 1
                    assert closed[uri] == 1, "a closed file is cleared once"
                    continue
                version = params.get("version")
                if version is None:
                    continue
                assert shown[uri] <= version <= versions[uri], "diagnostics of a wrong version"
                shown[uri] = version
                text = texts[uri].get(version)
                for diagnostic in params["diagnostics"] if text is not None else ():
                    _check_range(diagnostic["range"], text)


def _check_range(area: dict, text: str) -> None:
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    start, end = area["start"], area["end"]
    assert (start["line"], start["character"]) <= (end["line"], end["character"]), area
    for place in (start, end):
        assert 0 <= place["line"] < len(lines), f"{area} is outside the document"
        longest = len(lines[place["line"]].encode())  # the largest of the three encodings
        assert 0 <= place["character"] <= longest, f"{area} is outside its line"
