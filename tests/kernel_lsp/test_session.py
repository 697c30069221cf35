"""What a user lives through, with the real server process and a fake search host."""

import os
import signal
import time
from pathlib import Path

import pytest
from lsp_wire import CAPABILITIES, alive, apply_text

APPLY = "Apply 1.82x rewrite of double_kernel"


def optimized(wire, kernel, **options):
    """A server with one finished run that found 1.82x."""
    server = wire(**options)
    server.initialize()
    uri = server.open(kernel)
    server.end = server.run(uri)
    server.diagnostics(uri, lambda found: any(d["code"] == "KL001" for d in found))
    return server, uri


def codes(diagnostics):
    return [d["code"] for d in diagnostics]


# Start, progress, end


def test_a_run_from_start_to_review(wire, kernel):
    server, uri = optimized(wire, kernel)
    assert server.end["message"] == "1.82x verified"
    message = server.wait(lambda m: m.get("method") == "window/showMessage")["params"]
    assert message["message"].endswith('Code action "Review 1.82x rewrite of double_kernel".')
    action = server.actions(uri)[APPLY]
    assert action["isPreferred"] and action["kind"] == "refactor.rewrite.optimizeKernel"
    assert server.lenses(uri) == ["1.82x available · Review", "Apply"]
    command = server.actions(uri)["Review 1.82x rewrite of double_kernel"]["command"]
    review = server.command("review", **command["arguments"][0])["result"]
    assert "1.82x  (95% interval 1.79 to 1.85)" in review["evidence"]
    assert "not checked: non-contiguous x" in review["evidence"]
    assert review["current"] and "+    BLOCK = 256" in review["diff"]
    shown = server.wait(lambda m: m.get("method") == "window/showDocument")["params"]["uri"]
    assert shown.endswith(".diff")


def test_without_a_gpu_nothing_is_called_faster(wire, kernel):
    server = wire(scenario="untimed", settings={"device": "none"})
    server.initialize()
    uri = server.open(kernel)
    start = "Find CPU-checked rewrites for double_kernel (not timed)"
    assert start in server.actions(uri)
    assert "not timed" in server.run(uri)["message"]
    server.diagnostics(uri, lambda found: "KL001" in codes(found))
    actions = server.actions(uri)
    apply = [a for t, a in actions.items() if t.startswith("Apply")]
    assert [a["title"] for a in apply] == [
        "Apply CPU-checked rewrite of double_kernel (not timed): BLOCK 128 to 256"
    ]
    assert "isPreferred" not in apply[0]
    everything = " ".join([*actions, *server.lenses(uri), str(server.traffic)])
    assert "faster" not in everything and "1.82" not in everything


def test_without_a_gpu_every_text_says_what_there_is(wire, kernel):
    server = wire(scenario="untimed", settings={"device": "none"})
    server.initialize()
    uri = server.open(kernel)
    start = "Find CPU-checked rewrites for double_kernel (not timed)"
    assert start in why(server, uri) and start in server.actions(uri)
    server.run(uri)
    server.diagnostics(uri, lambda found: "KL001" in codes(found))
    text = server.command("report")["result"]["report"]
    assert "1 CPU-checked" in text and "1 verified" not in text
    apply = next(a for t, a in server.actions(uri).items() if t.startswith("Apply"))
    edits = server.request("codeAction/resolve", apply)["result"]["edit"]
    assert "not timed rewrite" not in str(edits)
    server.on_edit = lambda params: {"applied": False}
    assert server.command("apply", uri=uri, kernel="double_kernel")["result"]["message"].startswith(
        "Apply CPU-checked rewrite (not timed) of double_kernel"
    )
    server.change(uri, kernel.replace("2 * x", "3 * x"), 2)
    why(server, uri)  # waits for the analysis of the new version
    titles = list(server.actions(uri))
    assert "Review CPU-checked rewrite (not timed) of an earlier double_kernel" in titles
    made = "the CPU-checked rewrite (not timed) was made"
    assert f"Re-verify double_kernel: it changed since {made}" in titles


def test_one_rewrite_found_in_two_copies_is_offered_once(wire, kernel):
    server = wire(scenario="untimed", settings={"device": "none"})
    server.initialize()
    unix = server.open(kernel)
    dos = server.open(kernel.replace("\n", "\r\n"), "dos.py")
    for uri in (unix, dos):
        server.run(uri)
    server.diagnostics(dos, lambda found: "KL001" in codes(found))
    server.command("report")
    for uri in (unix, dos):
        titles = list(server.actions(uri))
        assert len([t for t in titles if t.startswith("Apply")]) == 1
        assert server.lenses(uri) == ["1 CPU-checked, not timed · Review"]


def test_refused_settings_are_shown_once(wire, kernel):
    server = wire(settings={"effort": "bogus", "budget": {"wallSeconds": 0}})
    server.initialize()
    uri = server.open(kernel)
    shown = server.wait(lambda m: m.get("method") == "window/showMessage")["params"]
    assert shown["type"] == 2
    assert 'kernelLsp.effort is "bogus"; it must be quick, normal or thorough' in shown["message"]
    assert "kernelLsp.budget.wallSeconds is 0; it must be above zero" in shown["message"]
    server.notify("workspace/didChangeConfiguration", {"settings": None})
    server.open(kernel, "other.py")
    server.run(uri)
    warnings = [
        m for _, m in server.traffic
        if m.get("method") == "window/showMessage" and m["params"]["type"] == 2
    ]  # fmt: skip
    assert len(warnings) == 1


def test_a_command_with_a_bad_budget_is_refused(wire, kernel):
    server = wire()
    server.initialize()
    uri = server.open(kernel)
    answer = server.command("optimize", uri=uri, kernel="double_kernel", budget={"wallSeconds": -1})
    wanted = "kernelLsp.budget.wallSeconds is -1; it must be above zero"
    assert wanted in answer["error"]["message"]
    assert not [m for _, m in server.traffic if m.get("method") == "$/progress"]


def test_no_gain_is_a_result_and_not_an_error(wire, kernel):
    server = wire(scenario="nothing")
    server.initialize()
    uri = server.open(kernel)
    assert server.run(uri)["message"].startswith("No verified gain in 2 min")
    message = server.wait(lambda m: m.get("method") == "window/showMessage")["params"]
    assert message["type"] == 3
    server.diagnostics(uri, lambda found: "KL001" in codes(found))
    assert not [t for t in server.actions(uri) if t.startswith("Apply")]


def test_a_second_start_gives_the_run_that_exists(wire, kernel):
    server = wire(scenario="slow")
    server.initialize()
    uri = server.open(kernel)
    first = server.command("optimize", uri=uri, kernel="double_kernel")["result"]
    again = server.command("optimize", uri=uri, kernel="double_kernel")["result"]
    assert again["runId"] == first["runId"]
    server.change(uri, kernel.replace("2 * x", "3 * x"), 2)
    other = server.command("optimize", uri=uri, kernel="double_kernel")["result"]
    assert other == {"state": "conflict", "runningRunId": first["runId"]}


def test_runs_on_one_device_queue_visibly(wire, kernel):
    server = wire(scenario="slow")
    server.initialize()
    one, two = server.open(kernel, "one.py"), server.open(kernel, "two.py")
    first = server.command("optimize", uri=one, kernel="double_kernel")["result"]
    second = server.command("optimize", uri=two, kernel="double_kernel")["result"]
    assert (first["queueAhead"], second["queueAhead"]) == (0, 1)
    assert second["state"] == "queued" and server.lenses(two) == ["queued · Cancel"]
    server.command("cancel", runId=first["runId"])
    server.diagnostics(one, lambda found: "KL001" in codes(found))
    update = server.wait(
        lambda m: (
            m.get("method") == "$/progress"
            and m["params"]["token"] == second["token"]
            and "tried" in (m["params"]["value"].get("message") or "")
        )
    )
    assert "tried" in update["params"]["value"]["message"]
    server.command("cancel", runId=second["runId"])


def test_a_cancelled_run_in_the_queue_never_starts(wire, kernel):
    server = wire(scenario="slow")
    server.initialize()
    one, two = server.open(kernel, "one.py"), server.open(kernel, "two.py")
    server.command("optimize", uri=one, kernel="double_kernel")
    second = server.command("optimize", uri=two, kernel="double_kernel")["result"]
    for _ in range(2):  # both bars are open: one that never was gets no end
        server.progress("begin")
    assert server.command("cancel", runId=second["runId"])["result"]["cancelled"]
    assert "no verified candidate yet" in server.progress("end")["message"]


# Cancel


@pytest.mark.parametrize("way", ["command", "progress", "action"])
def test_cancel_is_shown_at_once_and_keeps_what_was_verified(wire, kernel, way):
    server = wire(scenario="slow")
    server.initialize()
    uri = server.open(kernel)
    started = server.command("optimize", uri=uri, kernel="double_kernel")["result"]
    server.diagnostics(uri, lambda found: "KL001" in codes(found))
    server.progress("begin")
    if way == "command":
        server.command("cancel", runId=started["runId"])
    elif way == "progress":
        server.notify("window/workDoneProgress/cancel", {"token": started["token"]})
    else:
        action = server.actions(uri, only=["source"])["Cancel optimization of double_kernel"]
        assert action["kind"] == "source.kernelLsp.cancel"
        server.command("cancel", **action["command"]["arguments"][0])
    assert server.progress("end")["message"] == "cancelled; 1 verified candidate kept (1.82x)"
    time.sleep(0.3)  # the host offers another candidate when it is cancelled
    assert APPLY in server.actions(uri)
    assert not server.command("cancel", runId=started["runId"])["result"]["cancelled"]


def test_a_deaf_host_and_its_children_are_killed(wire, kernel, tmp_path):
    pids = tmp_path / "pids"
    server = wire(scenario="children", options={"FAKE_PIDS": str(pids), "FAKE_DEAF": "1"})
    server.initialize()
    uri = server.open(kernel)
    started = server.command("optimize", uri=uri, kernel="double_kernel")["result"]
    family = read_pids(pids)
    server.command("cancel", runId=started["runId"])
    assert gone(family, 4.0)


def test_the_budget_is_enforced_from_outside(wire, kernel):
    server = wire(scenario="hang", settings={"budget": {"wallSeconds": 0.5}})
    server.initialize()
    uri = server.open(kernel)
    server.command("optimize", uri=uri, kernel="double_kernel")
    assert server.progress("end", 12)["message"] == "out of time; no verified candidate yet"


# Accidents


def test_a_crashing_host_is_told_and_keeps_what_was_verified(wire, kernel):
    server = wire(scenario="crash")
    server.initialize()
    uri = server.open(kernel)
    message = server.run(uri)["message"]
    assert "Segmentation fault (of the fake)" in message
    assert "1 verified candidate kept" in message
    server.diagnostics(uri, lambda found: "KL001" in codes(found))
    assert APPLY in server.actions(uri)
    again = server.command("optimize", uri=uri, kernel="double_kernel")["result"]
    assert again["runId"] == "r2"


def test_output_that_is_no_event_is_passed_over(wire, kernel):
    server, uri = optimized(wire, kernel, scenario="noise")
    assert APPLY in server.actions(uri)


def test_a_flooding_host_leaves_the_editor_alone(wire, kernel):
    server = wire(scenario="flood", options={"FAKE_SECONDS": "3"})
    server.initialize()
    uri = server.open(kernel)
    server.command("optimize", uri=uri, kernel="double_kernel")
    server.progress("begin")
    for _ in range(10):
        assert server.actions(uri)
    end = time.monotonic() + 2.0
    while time.monotonic() < end:
        time.sleep(0.1)
    reports = [
        m
        for way, m in server.traffic
        if m.get("method") == "$/progress" and m["params"]["value"]["kind"] == "report"
    ]
    assert len(reports) <= 12, "at most two progress messages a second"


def test_a_compile_error_of_the_user_is_a_warning_on_its_line(wire, kernel):
    server = wire(scenario="refuse")
    server.initialize()
    uri = server.open(kernel)
    server.run(uri)
    found = server.diagnostics(uri, lambda found: "KL101" in codes(found))
    error = next(d for d in found if d["code"] == "KL101")
    assert error["severity"] == 2 and error["range"]["start"]["line"] == 9
    assert "Why can't I optimize double_kernel?" in server.actions(uri)
    server.change(uri, kernel.replace("2 * x", "4 * x"), 2)
    server.diagnostics(uri, lambda found: "KL101" not in codes(found))


def test_a_fault_of_the_machine_can_be_tried_again(wire, kernel):
    server = wire(scenario="lacking")
    server.initialize()
    uri = server.open(kernel)
    assert server.run(uri)["message"] == "module torch is missing"
    assert "Why can't I optimize double_kernel?" not in server.actions(uri)
    again = server.command("optimize", uri=uri, kernel="double_kernel")["result"]
    assert again["runId"] == "r2"


def test_killing_the_server_leaves_no_child(wire, kernel, tmp_path):
    pids = tmp_path / "pids"
    server = wire(scenario="children", options={"FAKE_PIDS": str(pids)})
    server.initialize()
    uri = server.open(kernel)
    server.command("optimize", uri=uri, kernel="double_kernel")
    family = read_pids(pids)
    os.kill(server.process.pid, signal.SIGKILL)
    assert gone(family, 2.0)


def test_shutdown_during_a_run_leaves_no_child(wire, kernel, tmp_path):
    pids = tmp_path / "pids"
    server = wire(scenario="children", options={"FAKE_PIDS": str(pids)})
    server.initialize()
    uri = server.open(kernel)
    server.command("optimize", uri=uri, kernel="double_kernel")
    family = read_pids(pids)
    server.finish()
    assert gone(family, 0.5)


# Apply, undo, revert


def test_apply_by_resolve_undo_and_apply_again(wire, kernel):
    server, uri = optimized(wire, kernel)
    action = server.actions(uri)[APPLY]
    resolved = server.request("codeAction/resolve", action)["result"]
    assert {k: v for k, v in resolved.items() if k != "edit"} == action
    (change,) = resolved["edit"]["documentChanges"]
    assert change["textDocument"] == {"uri": uri, "version": 1}
    new = apply_text(kernel, change["edits"])
    assert new == kernel.replace("BLOCK = 128", "BLOCK = 256")

    server.change(uri, new, 2)
    server.diagnostics(uri, lambda found: any("applied" in d["message"] for d in found))
    actions = server.actions(uri)
    assert APPLY not in actions
    revert = server.request("codeAction/resolve", actions[
        "Revert double_kernel to its form before r1"
    ])["result"]  # fmt: skip
    assert apply_text(new, revert["edit"]["documentChanges"][0]["edits"]) == kernel

    server.drain()
    server.change(uri, kernel, 3)  # undo
    server.diagnostics(uri, lambda found: any("available" in d["message"] for d in found))
    assert APPLY in server.actions(uri)


def test_a_formatter_after_apply_keeps_the_state(wire, kernel):
    server, uri = optimized(wire, kernel)
    new = kernel.replace("BLOCK = 128", "BLOCK = 256")
    formatted = new.replace("mask=mask)", "mask = mask,\n    )").replace("2 * x", "2*x")
    assert formatted != new
    server.change(uri, formatted, 2)
    server.diagnostics(uri, lambda found: any("applied" in d["message"] for d in found))
    assert "Revert double_kernel to its form before r1" in server.actions(uri)


def test_apply_moves_with_the_kernel(wire, kernel):
    server, uri = optimized(wire, kernel)
    moved = "# é😀 a new first line\nX = 1\n\n\n" + kernel.replace("return y", "return y  # ok")
    server.change(uri, moved, 2)
    server.diagnostics(uri, lambda found: any(d["range"]["start"]["line"] == 10 for d in found))
    action = server.actions(uri, line=10)[APPLY]
    edit = server.request("codeAction/resolve", action)["result"]["edit"]
    new = apply_text(moved, edit["documentChanges"][0]["edits"])
    assert new.startswith("# é😀 a new first line\nX = 1\n") and "BLOCK = 256" in new


def test_a_changed_kernel_refuses_the_edit_and_offers_to_verify(wire, kernel):
    server, uri = optimized(wire, kernel)
    action = server.actions(uri)[APPLY]
    server.change(uri, kernel.replace("2 * x", "3 * x"), 2)
    answer = server.request("codeAction/resolve", action)
    assert answer["error"]["code"] == -32803
    assert "double_kernel changed since the run" in answer["error"]["message"]
    actions = server.actions(uri)
    verify = [t for t in actions if t.startswith("Re-verify double_kernel")]
    assert verify and not [t for t in actions if t.startswith("Apply")]
    argument = actions[verify[0]]["command"]["arguments"][0]
    assert server.command("verify", **argument)["result"]["runId"] == "r2"
    assert server.progress("end")["message"] == "1.82x verified"


def test_a_kernel_edited_during_its_run(wire, kernel):
    server = wire(scenario="late")
    server.initialize()
    uri = server.open(kernel)
    server.command("optimize", uri=uri, kernel="double_kernel")
    server.change(uri, kernel.replace("2 * x", "3 * x"), 2)
    suffix = server.wait(
        lambda m: (
            m.get("method") == "$/progress"
            and "(for the version at start)" in (m["params"]["value"].get("message") or "")
        )
    )
    assert len(suffix["params"]["value"]["message"]) <= 60
    server.progress("end")
    message = server.wait(lambda m: m.get("method") == "window/showMessage")["params"]["message"]
    assert "(for the version at start)" in message
    time.sleep(0.2)
    actions = server.actions(uri)
    assert not [t for t in actions if t.startswith("Apply")]
    assert [t for t in actions if t.startswith("Re-verify")]
    assert [t for t in actions if t.startswith("Review")]


def test_the_apply_command_looks_at_the_text_afterwards(wire, kernel):
    server, uri = optimized(wire, kernel)

    def edit(params):
        new = apply_text(kernel, params["edit"]["documentChanges"][0]["edits"])
        server.change(uri, new, 2)
        return {"applied": True}

    server.on_edit = edit
    assert server.command("apply", uri=uri, kernel="double_kernel")["result"]["applied"]


@pytest.mark.parametrize("reply", [{"applied": True}, {"applied": False}, None])
def test_an_edit_that_did_not_arrive_is_not_claimed(wire, kernel, reply):
    """Said yes and did nothing; said no; answered with an error, as eglot's "n" does."""
    server, uri = optimized(wire, kernel)
    server.drain()
    server.on_edit = lambda _: reply
    answer = server.command("apply", uri=uri, kernel="double_kernel")
    assert answer["result"]["applied"] is False
    server.wait(
        lambda m: (
            m.get("method") == "window/showMessage"
            and m["params"]["type"] == 2
            and "Apply 1.82x rewrite of double_kernel" in m["params"]["message"]
        )
    )


def test_windows_line_ends_stay(wire, kernel):
    dos = kernel.replace("\n", "\r\n")
    server, uri = optimized(wire, dos)
    action = server.actions(uri)[APPLY]
    (change,) = server.request("codeAction/resolve", action)["result"]["edit"]["documentChanges"]
    assert apply_text(dos, change["edits"]) == dos.replace("BLOCK = 128", "BLOCK = 256")


def test_plain_changes_for_clients_without_versions(wire, kernel):
    capabilities = {**CAPABILITIES, "workspace": {"workspaceEdit": {}}}
    server, uri = optimized(wire, kernel, capabilities=capabilities)
    edit = server.request("codeAction/resolve", server.actions(uri)[APPLY])["result"]["edit"]
    assert list(edit) == ["changes"]
    assert apply_text(kernel, edit["changes"][uri]) == kernel.replace("= 128", "= 256")


# Why not


def why(server, uri):
    return server.command("explain", uri=uri, kernel="double_kernel")["result"]["message"]


def test_an_untrusted_workspace_is_only_parsed(wire, kernel, tmp_path):
    server = wire(trusted=None)
    server.initialize()
    uri = server.open(kernel)
    server.diagnostics(uri, lambda found: codes(found) == ["KL002"])
    actions = server.actions(uri)
    assert "not trusted" in why(server, uri)
    refused = server.command("optimize", uri=uri, kernel="double_kernel")["result"]
    assert refused["state"] == "refused"
    server.command("trustWorkspace", **actions["Trust this workspace"]["command"]["arguments"][0])
    server.diagnostics(uri, lambda found: codes(found) == [])
    assert server.run(uri)["message"] == "1.82x verified"
    server.finish()

    later = wire(trusted=None)
    later.initialize()
    uri = later.open(kernel)
    later.diagnostics(uri, lambda found: "KL002" not in codes(found))


def test_an_editor_in_restricted_mode_is_not_overruled(wire, kernel):
    server = wire(trusted=False)
    server.initialize()
    uri = server.open(kernel)
    assert server.command("trustWorkspace", uri=uri)["result"]["trusted"] is False
    answer = server.command("optimize", uri=uri, kernel="double_kernel")["result"]
    assert answer["state"] == "refused"
    server.notify("kernelLsp/setTrust", {"trusted": True})
    assert server.run(uri)["message"] == "1.82x verified"


def test_a_missing_workload_can_be_declared(wire, kernel):
    bare = kernel.replace("# kernel-lsp: workload x=f32[1000]\n", "")
    server = wire()
    server.initialize()
    uri = server.open(bare)
    server.diagnostics(uri, lambda found: codes(found) == ["KL803"])
    actions = server.actions(uri)
    assert "no workload" in why(server, uri)
    disabled = [a for a in actions.values() if "disabled" in a]
    assert disabled[0]["disabled"]["reason"] == "no workload"
    action = actions["Declare a workload for double_kernel"]
    edit = server.request("codeAction/resolve", action)["result"]["edit"]
    new = apply_text(bare, edit["documentChanges"][0]["edits"])
    before, after = bare[: bare.index("def double(")], bare[bare.index("def double(") :]
    assert new.startswith(f"{before}# kernel-lsp: workload x=") and new.endswith(f"\n{after}")
    server.change(uri, new, 2)
    server.diagnostics(uri, lambda found: codes(found) == [])
    assert server.command("optimize", uri=uri, kernel="double_kernel")["result"]["runId"]


def test_reasons_name_the_remedy(wire, kernel):
    server = wire()
    server.initialize()
    broken = server.open(kernel.replace("mask = offsets < n", "mask = (offsets < "), "broken.py")
    assert "syntax error" in why(server, broken)
    wrong = server.open(kernel.replace("x=f32[1000]", "x=f33[1000]"), "wrong.py")
    found = server.diagnostics(wrong, lambda found: "KL801" in codes(found))
    assert found[0]["severity"] == 2
    assert "its workload declaration has a mistake" in why(server, wrong)
    alone = server.open(kernel[: kernel.index("# kernel-lsp")], "alone.py")
    assert "launches" in why(server, alone)


def test_a_helper_says_who_calls_it(wire, kernel):
    helper = "@triton.jit\ndef twice(x):\n    return 2 * x\n\n\n"
    text = kernel.replace("@triton.jit\n", helper + "@triton.jit\n").replace("2 * x,", "twice(x),")
    server = wire()
    server.initialize()
    uri = server.open(text)
    actions = server.actions(uri, line=7)
    answer = server.command("explain", uri=uri, kernel="twice")["result"]["message"]
    assert "Why can't I optimize twice?" in actions
    assert "called by double_kernel" in answer


def test_disabled_actions_only_where_the_client_draws_them(wire, kernel):
    plain = {"textDocument": {"codeAction": {"resolveSupport": {"properties": ["edit"]}}}}
    server = wire(capabilities=plain, trusted=False)
    server.initialize()
    uri = server.open(kernel)
    actions = server.actions(uri)
    assert not [a for a in actions.values() if "disabled" in a]
    assert "Why can't I optimize double_kernel?" in actions


def test_an_unsaved_document_is_parsed_and_not_run(wire, kernel):
    server = wire()
    server.initialize()
    uri = "untitled:Untitled-1"
    item = {"uri": uri, "languageId": "python", "version": 1, "text": kernel}
    server.notify("textDocument/didOpen", {"textDocument": item})
    assert "not saved" in why(server, uri)
    answer = server.command("optimize", uri=uri, kernel="double_kernel")["result"]
    assert answer["state"] == "refused"


# Surfaces


def test_details_can_be_shown_and_hidden(wire, kernel):
    server = wire()
    server.initialize()
    uri = server.open(kernel)
    title = "Show performance details for double_kernel"
    argument = server.actions(uri, only=["source"])[title]["command"]["arguments"][0]
    assert server.command("details", **argument)["result"] == {"shown": True}
    assert "Hide performance details for double_kernel" in server.actions(uri)


def test_only_filters_kinds_by_prefix(wire, kernel):
    server = wire()
    server.initialize()
    uri = server.open(kernel)
    kinds = {a["kind"] for a in server.actions(uri, only=["refactor"]).values()}
    assert kinds == {"refactor.rewrite.optimizeKernel"}
    assert server.actions(uri, only=["source.fixAll"]) == {}


def test_ignored_codes_are_not_shown(wire, kernel):
    server = wire(trusted=False, settings={"ignore": ["no-data"]})
    server.initialize()
    uri = server.open(kernel)
    assert server.diagnostics(uri, lambda found: True) == []


def test_a_closed_file_is_cleared_and_its_run_goes_on(wire, kernel):
    server = wire(scenario="late")
    server.initialize()
    uri = server.open(kernel)
    server.command("optimize", uri=uri, kernel="double_kernel")
    server.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    assert server.progress("end")["message"] == "1.82x verified"
    uri = server.open(kernel)
    server.diagnostics(uri, lambda found: "KL001" in codes(found))
    assert APPLY in server.actions(uri)


def test_an_editor_that_draws_runs_gets_updates_and_no_progress(wire, kernel):
    capabilities = {**CAPABILITIES, "experimental": {"kernelLsp": {"runs": True}}}
    server = wire(capabilities=capabilities)
    server.initialize()
    uri = server.open(kernel)
    server.command("optimize", uri=uri, kernel="double_kernel")
    last = server.wait(
        lambda m: m.get("method") == "kernelLsp/runUpdate" and m["params"]["state"] == "finished"
    )["params"]
    assert last["best"]["speedup"] == 1.82 and last["outcome"] == "improved"
    assert not [m for _, m in server.traffic if m.get("method") == "$/progress"]


def test_an_editor_that_refuses_progress_still_hears_the_end(wire, kernel):
    server = wire()
    server.refuse_progress = True
    server.initialize()
    uri = server.open(kernel)
    server.command("optimize", uri=uri, kernel="double_kernel")
    message = server.wait(lambda m: m.get("method") == "window/showMessage")["params"]
    assert message["message"].startswith("double_kernel: 1.82x verified")


def test_hover_shows_the_evidence(wire, kernel):
    server, uri = optimized(wire, kernel)
    place = {"textDocument": {"uri": uri}, "position": {"line": 6, "character": 6}}
    text = server.request("textDocument/hover", place)["result"]["contents"]["value"]
    assert "412 → 226 µs" in text and "H200" in text


def test_the_report_tells_no_secret_and_no_source(wire, kernel):
    server, _ = optimized(wire, kernel, options={"API_KEY": "s3cret-value"})
    text = server.command("report")["result"]["report"]
    assert "API_KEY" in text and "r1 double_kernel: finished" in text
    log = Path(server.folder / "state" / "kernel-lsp" / "log" / "server.log")
    both = text + (log.read_text() if log.exists() else "")
    assert "s3cret-value" not in both and "tl.load" not in both


def test_a_storm_of_edits_is_answered_for_the_last_version(wire, kernel):
    server = wire()
    server.initialize()
    uri = server.open(kernel)
    server.lenses(uri)
    top = {"line": 0, "character": 0}
    for version in range(2, 1002):
        server.notify(
            "textDocument/didChange",
            {
                "textDocument": {"uri": uri, "version": version},
                "contentChanges": [{"range": {"start": top, "end": top}, "text": "\n"}],
            },
        )
    answer = server.request("textDocument/codeLens", {"textDocument": {"uri": uri}})["result"]
    assert answer[0]["range"]["start"] == {"line": 1006, "character": 4}
    assert [t for t in server.actions(uri, line=1006) if "double_kernel" in t]
    assert server.actions(uri, line=6) == {}


# Helpers


def read_pids(path: Path) -> list[int]:
    end = time.monotonic() + 15
    while time.monotonic() < end:
        if path.exists() and path.read_text():
            return [int(pid) for pid in path.read_text().split()]
        time.sleep(0.05)
    raise AssertionError("the host did not start")


def gone(pids: list[int], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not any(alive(pid) for pid in pids):
            return True
        time.sleep(0.05)
    return not any(alive(pid) for pid in pids)
