"""Findings in the editor, with the real server process and a facts host without a compiler."""

import itertools
import os
import signal
import time
from pathlib import Path

import pytest
from conftest_kernel import KERNEL
from lsp_conformance import check_traffic
from lsp_wire import CAPABILITIES, Wire, alive, apply_text

NUMBERS = itertools.count(1)
HELP = "https://example.org/findings"

NAME, LOAD, STORE = 6, 9, 10
"""Lines of the kernel's name, load and store."""

RICH = {
    **CAPABILITIES,
    "textDocument": {
        **CAPABILITIES["textDocument"],
        "publishDiagnostics": {
            "versionSupport": True,
            "dataSupport": True,
            "relatedInformation": True,
            "codeDescriptionSupport": True,
        },
        "hover": {"contentFormat": ["markdown", "plaintext"]},
    },
}


def started(wire, kernel, facts="figures", **options):
    """A server with the kernel open; facts are on their way."""
    server = wire(facts=facts, **options)
    server.initialize()
    return server, server.open(kernel)


def code(name):
    return lambda found: any(d["code"] == name for d in found)


def without(name):
    return lambda found: not any(d["code"] == name for d in found)


def summary(found):
    return next(d for d in found if d["code"] == "KL001")


def details(server, uri, show=True):
    return server.command("details", uri=uri, kernel="double_kernel", show=show)["result"]


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """One server for the tests that need no settings of their own; each opens a file of its own."""
    connection = Wire(
        tmp_path_factory.mktemp("shared"),
        facts="figures",
        capabilities=RICH,
        settings={"device": "0", "helpUrl": HELP},
    )
    connection.initialize()
    connection.fresh = lambda text: connection.open(text, f"k{next(NUMBERS)}.py")
    yield connection
    connection.finish()
    check_traffic(connection.traffic)


@pytest.fixture
def kernel():
    """A kernel whose unit no other test has: facts of equal units are shared."""
    return KERNEL.replace("return y", f"return y + {next(NUMBERS)}")


@pytest.fixture
def server(shared):
    """The shared server, with nothing left of what it said before."""
    shared.drain()
    return shared


# What is shown


def test_a_summary_stands_on_the_name_and_warnings_on_their_lines(server, kernel):
    uri = server.fresh(kernel)
    found = server.diagnostics(uri, code("KL001"))
    assert sorted(d["code"] for d in found) == ["KL001", "KL251"]
    assert summary(found)["message"] == (
        "double_kernel: 40 registers, 56 % occupancy (registers); 6 findings. "
        '"Show performance details" lists the costliest 5.'
    )
    assert summary(found)["severity"] == 3
    assert summary(found)["range"]["start"] == {"line": NAME, "character": 4}
    warning = next(d for d in found if d["code"] == "KL251")
    assert warning["severity"] == 2 and warning["range"]["start"]["line"] == LOAD


def test_details_show_the_five_costliest_and_hide_again(server, kernel):
    uri = server.fresh(kernel)
    server.diagnostics(uri, code("KL001"))
    action = server.actions(uri)["Show performance details for double_kernel"]
    assert action["kind"] == "source.kernelLsp.details"
    server.command("details", **action["command"]["arguments"][0])
    found = server.diagnostics(uri, code("KL105"))
    hints = [d["code"] for d in found if d["severity"] == 4]
    assert sorted(hints) == ["KL104", "KL105", "KL107", "KL112", "KL205"]
    assert summary(found)["message"].endswith("6 findings, the costliest 5 shown")
    load = next(d for d in found if d["code"] == "KL105")
    assert load["range"] == {
        "start": {"line": LOAD, "character": 4},
        "end": {"line": LOAD, "character": 43},
    }
    assert load["data"]["code"] == "KL105" and load["data"]["rule"] == "specialise-sizes"
    assert "tags" not in load
    assert "Hide performance details for double_kernel" in server.actions(uri)
    server.drain()
    details(server, uri, show=False)
    server.diagnostics(uri, without("KL105"))


def test_per_line_is_a_setting_and_can_be_hidden_for_one_kernel(wire, kernel):
    server, uri = started(wire, kernel, settings={"details": "perLine"})
    load = next(d for d in server.diagnostics(uri, code("KL105")) if d["code"] == "KL105")
    assert "relatedInformation" not in load and "codeDescription" not in load
    server.drain()
    details(server, uri, show=False)
    found = server.diagnostics(uri, without("KL105"))
    assert code("KL001")(found)


def test_details_off_leaves_warnings(wire, kernel):
    server, uri = started(wire, kernel, settings={"details": "off"})
    found = server.diagnostics(uri, code("KL251"))
    assert [d["code"] for d in found] == ["KL251"]


def test_clients_that_draw_them_get_related_places_and_help_pages(server, kernel):
    url = "https://example.org/findings"
    uri = server.fresh(kernel)
    details(server, uri)
    found = server.diagnostics(uri, code("KL105"))
    load = next(d for d in found if d["code"] == "KL105")
    assert load["codeDescription"]["href"] == f"{url}#kl105"
    (place,) = load["relatedInformation"]
    assert place["message"] == "launched here" and place["location"]["uri"] == uri
    assert place["location"]["range"]["start"] == {"line": 18, "character": 4}


def test_several_targets_stand_side_by_side(wire, kernel):
    settings = {"targets": ["sm_90", "gfx942"], "details": "perLine"}
    server, uri = started(wire, kernel, settings=settings)
    found = server.diagnostics(uri, lambda found: "gfx942" in str(found))
    assert summary(found)["message"].startswith(
        "double_kernel: sm_90: 40 registers, 56 % occupancy (registers); "
        "gfx942: 64 registers, 56 % occupancy (registers); 6 findings"
    )
    loads = [d["message"] for d in found if d["code"] == "KL105"]
    assert loads == ["sm_90, gfx942: loads of 4 B"]
    assert server.asked(uri) == ["double_kernel sm_90,gfx942"]


def test_ignored_findings_are_not_shown(wire, kernel):
    settings = {"details": "perLine", "ignore": ["KL107", "low-occupancy"]}
    server, uri = started(wire, kernel, settings=settings)
    found = server.diagnostics(uri, code("KL105"))
    assert not {"KL104", "KL107"} & {d["code"] for d in found}


def test_an_assumed_launch_is_said(wire, kernel):
    bare = kernel.replace("# kernel-lsp: workload x=f32[1000]\n", "")
    server, uri = started(wire, bare, facts="assumed")
    found = server.diagnostics(uri, code("KL001"))
    assert "assumed launch; no findings" in summary(found)["message"]
    assert code("KL803")(found)


# What is not there is said


def test_an_untrusted_workspace_starts_no_host_until_it_is_trusted(wire, kernel):
    server, uri = started(wire, kernel, trusted=None)
    server.diagnostics(uri, lambda found: [d["code"] for d in found] == ["KL002"])
    details(server, uri)
    time.sleep(1.3)
    assert server.asked(uri) == []
    assert "Show machine code" not in str(server.actions(uri))
    server.command("trustWorkspace", uri=uri)
    server.diagnostics(uri, code("KL105"))
    server.notify("kernelLsp/setTrust", {"trusted": False})
    server.diagnostics(uri, lambda found: [d["code"] for d in found] == ["KL002"])


def test_a_kernel_that_does_not_compile_gets_the_compilers_words(wire, kernel):
    server, uri = started(wire, kernel, facts="refuse")
    found = server.diagnostics(uri, code("KL101"))
    (error,) = found
    assert error["severity"] == 2 and error["range"]["start"]["line"] == LOAD
    disabled = [a for a in server.actions(uri).values() if "disabled" in a]
    assert disabled[0]["disabled"]["reason"] == "it does not compile"
    details(server, uri)
    found = server.diagnostics(uri, code("KL002"))
    assert "it does not compile, see the warning" in str(found)


@pytest.mark.parametrize(
    ("facts", "words"),
    [("lacking", "module triton is missing"), ("problem", "known targets are sm_90")],
)
def test_why_there_is_no_data_is_said_once_and_not_asked_again(wire, kernel, facts, words):
    other = kernel.replace("double", "triple").split("@triton.jit")[1]
    kernel = f"{kernel}\n\n@triton.jit{other}"
    server, uri = started(wire, kernel, facts=facts)
    found = server.diagnostics(uri, code("KL002"))
    assert len(found) == 1 and words in found[0]["message"]
    server.change(uri, "\n" + kernel, 2)
    server.diagnostics(uri, lambda found: found and found[0]["range"]["start"]["line"] == NAME + 1)
    time.sleep(1.3)
    assert len(server.asked(uri)) == 1
    details(server, uri)  # the user may have mended it
    wait_for(lambda: len(server.asked(uri)) == 2)


# Versions


def test_facts_follow_their_kernel_and_come_back_with_its_form(server, kernel):
    uri = server.fresh(kernel)
    details(server, uri)
    server.diagnostics(uri, code("KL105"))
    server.change(uri, "# one\n\n" + kernel, 2)
    found = server.diagnostics(uri, code("KL105"))
    assert summary(found)["range"]["start"]["line"] == NAME + 2
    load = next(d for d in found if d["code"] == "KL105")
    assert load["range"]["start"]["line"] == LOAD + 2
    server.drain()
    server.change(uri, kernel.replace("2 * x", "3 * x"), 3)
    server.diagnostics(uri, lambda found: found == [])
    server.change(uri, kernel, 4)  # undone before the pause is over
    server.diagnostics(uri, code("KL105"))
    time.sleep(1.5)
    assert server.asked(uri) == ["double_kernel "]


def test_a_formatter_moves_facts_with_their_statements(server, kernel):
    uri = server.fresh(kernel)
    details(server, uri)
    server.diagnostics(uri, code("KL105"))
    formatted = kernel.replace("    mask = offsets < n\n", "    # why\n\n    mask = offsets<n\n")
    wrapped = "tl.load(\n        x_ptr + offsets, mask=mask,\n    )"
    formatted = formatted.replace("tl.load(x_ptr + offsets, mask=mask)", wrapped)
    assert formatted != kernel
    server.change(uri, formatted, 2)
    found = server.diagnostics(uri, code("KL105"))
    load = next(d for d in found if d["code"] == "KL105")
    assert load["range"]["start"] == {"line": LOAD + 2, "character": 4}
    for row in (2, 3):
        assert "8 loads of 16 B" in server.hover(uri, LOAD + row, 9), "of the whole statement"
    store = next(d for d in found if d["code"] == "KL107")
    assert store["range"]["start"] == {"line": STORE + 4, "character": 4}
    time.sleep(1.3)
    assert server.asked(uri) == ["double_kernel "]


def test_only_the_newest_version_is_asked_about(wire, kernel):
    server, uri = started(wire, kernel, options={"FAKE_FACTS_SECONDS": "30"})
    wait_for(lambda: len(server.asked(uri)) == 1)
    for version in range(2, 12):
        server.change(uri, kernel.replace("2 * x", f"{version} * x"), version)
        time.sleep(0.05)
    wait_for(lambda: len(server.asked(uri)) == 2)
    time.sleep(0.5)
    assert len(server.asked(uri)) == 2
    assert not [m for _, m in server.traffic if "KL001" in str(m)]


def test_a_declaration_that_changes_is_asked_about(server, kernel):
    uri = server.fresh(kernel)
    server.diagnostics(uri, code("KL001"))
    server.drain()
    server.change(uri, kernel.replace("f32[1000]", "f32[9999]"), 2)
    server.diagnostics(uri, without("KL001"))
    server.diagnostics(uri, code("KL001"))
    assert len(server.asked(uri)) == 2


def test_two_kernels_only_the_edited_one_is_asked_about(server, kernel):
    other = kernel.replace("double", "triple").replace("2 * x", "3 * x").split("@triton.jit")[1]
    both = f"{kernel}\n\n@triton.jit{other}"
    uri = server.fresh(both)
    server.diagnostics(uri, lambda found: str(found).count("KL001") >= 2)
    server.change(uri, both.replace("3 * x", "5 * x"), 2)
    server.diagnostics(uri, lambda found: [d["code"] for d in found].count("KL001") == 1)
    server.diagnostics(uri, lambda found: [d["code"] for d in found].count("KL001") == 2)
    assert server.asked(uri) == ["double_kernel,triple_kernel ", "triple_kernel "]


def test_broken_code_keeps_the_facts_of_whole_kernels(server, kernel):
    uri = server.fresh(kernel)
    server.diagnostics(uri, code("KL001"))
    server.change(uri, kernel + "\n\ndef broken(:\n    pass\n", 2)
    server.diagnostics(uri, code("KL001"))
    time.sleep(1.3)
    assert len(server.asked(uri)) == 1


# Settings


@pytest.mark.parametrize("mode", ["off", "onSave"])
def test_nothing_is_compiled_while_typing_unless_wanted(wire, kernel, mode):
    server, uri = started(wire, kernel, settings={"compile": mode})
    at_open = 1 if mode == "onSave" else 0
    if at_open:
        server.diagnostics(uri, code("KL001"))
    server.change(uri, kernel.replace("2 * x", "3 * x"), 2)
    time.sleep(1.6)
    assert len(server.asked(uri)) == at_open
    server.save(uri)
    if mode == "onSave":
        server.diagnostics(uri, code("KL001"))
    else:
        time.sleep(1.3)
        assert server.asked(uri) == []
        details(server, uri)  # the user asks
        server.diagnostics(uri, code("KL105"))


def test_saving_asks_again_for_what_other_files_may_have_changed(wire, kernel):
    server, uri = started(wire, kernel)
    server.diagnostics(uri, code("KL001"))
    server.save(server.open("X = 1\n", "other.py"))
    server.change(uri, kernel + "\n", 2)
    wait_for(lambda: len(server.asked(uri)) == 1)
    time.sleep(1.2)
    server.save((server.folder / "other.py").as_uri())
    wait_for(lambda: len(server.asked(uri)) == 2)


# Actions


def test_a_finding_offers_to_try_its_rule_and_only_that(server, kernel):
    uri = server.fresh(kernel)
    details(server, uri)
    server.diagnostics(uri, code("KL105"))
    promise = "verified before it is offered"
    if not any(Path("/dev").glob("nvidia[0-9]*")):
        promise = "checked on the CPU, not timed"
    title = f"Try specialise-sizes for double_kernel ({promise})"
    assert title not in server.actions(uri, STORE)
    action = server.actions(uri, LOAD)[title]
    assert action["kind"] == "refactor.rewrite.optimizeKernel"
    argument = action["command"]["arguments"][0]
    assert argument["rules"] == ["specialise-sizes"]
    assert server.command("optimize", **argument)["result"]["runId"] == "r1"
    assert server.progress("end")["message"] == "1.82x verified"


def test_ignoring_writes_a_comment_that_hides_the_finding(server, kernel):
    uri = server.fresh(kernel)
    details(server, uri)
    server.diagnostics(uri, code("KL107"))
    server.change(uri, "\n" + kernel, 2)
    server.diagnostics(uri, code("KL107"))
    action = server.actions(uri, STORE + 1)["Ignore uncoalesced-access here"]
    assert action["kind"] == "quickfix"
    resolved = server.request("codeAction/resolve", action)["result"]
    (change,) = resolved["edit"]["documentChanges"]
    assert change["textDocument"]["version"] == 2
    new = apply_text("\n" + kernel, change["edits"])
    line = new.split("\n")[STORE + 1]
    assert line.endswith("mask=mask)  # kernel-lsp: ignore[uncoalesced-access]")
    server.drain()
    server.change(uri, new, 3)
    found = server.diagnostics(uri, without("KL107"))
    assert code("KL105")(found) and code("KL113")(found), "the next one moves up"
    again = server.actions(uri, STORE + 1)["Ignore layout-conversion here"]
    edit = server.request("codeAction/resolve", again)["result"]["edit"]
    both = apply_text(new, edit["documentChanges"][0]["edits"])
    assert "# kernel-lsp: ignore[uncoalesced-access, layout-conversion]" in both
    server.drain()
    server.change(uri, both, 4)
    server.diagnostics(uri, without("KL113"))


def test_clients_that_resolve_nothing_ignore_by_command(wire, kernel):
    capabilities = {"workspace": {"applyEdit": True}}
    server, uri = started(wire, kernel, settings={"details": "perLine"}, capabilities=capabilities)
    server.diagnostics(uri, code("KL107"))
    action = server.actions(uri, STORE)["Ignore uncoalesced-access here"]

    def edit(params):
        server.change(uri, apply_text(kernel, params["edit"]["changes"][uri]), 2)
        return {"applied": True}

    server.on_edit = edit
    answer = server.command("ignore", **action["command"]["arguments"][0])
    assert answer["result"]["applied"]
    server.diagnostics(uri, lambda found: code("KL105")(found) and without("KL107")(found))


# Machine code


def test_machine_code_is_a_read_only_file_at_the_row_of_the_line(server, kernel):
    uri = server.fresh(kernel)
    server.diagnostics(uri, code("KL001"))
    action = server.actions(uri, LOAD)["Show machine code for this line (sm_90)"]
    assert action["kind"] == "source.kernelLsp.listing"
    answer = server.command("listing", **action["command"]["arguments"][0])["result"]
    shown = server.wait(lambda m: m.get("method") == "window/showDocument")["params"]
    path = Path(answer["path"])
    assert (
        shown["uri"] == path.as_uri() and path.parent == server.folder / "state/kernel-lsp/listings"
    )
    row = shown["selection"]["start"]["line"]
    assert path.read_text().split("\n")[row].startswith("LDG.E.128")
    assert not path.stat().st_mode & 0o222
    again = server.command("listing", **action["command"]["arguments"][0])["result"]
    assert again["path"] == answer["path"]


def test_machine_code_is_a_virtual_document_where_the_client_shows_such(wire, kernel):
    workspace = {
        **CAPABILITIES["workspace"],
        "textDocumentContent": {"dynamicRegistration": True},
    }
    server, uri = started(wire, kernel, capabilities={**CAPABILITIES, "workspace": workspace})
    registration = server.wait(lambda m: m.get("method") == "client/registerCapability")
    (what,) = registration["params"]["registrations"]
    assert what["registerOptions"] == {"schemes": ["kernel-listing"]}
    server.diagnostics(uri, code("KL001"))
    server.command("listing", uri=uri, kernel="double_kernel", line=LOAD)
    shown = server.wait(lambda m: m.get("method") == "window/showDocument")["params"]
    assert shown["uri"].startswith("kernel-listing:/double_kernel.")
    text = server.request("workspace/textDocumentContent", {"uri": shown["uri"]})["result"]["text"]
    assert "LDG.E.128" in text
    gone = server.request("workspace/textDocumentContent", {"uri": "kernel-listing:/x"})
    assert gone["error"]["code"] == -32803


def test_no_machine_code_says_why(wire, kernel):
    server, uri = started(wire, kernel, facts="lacking")
    answer = server.command("listing", uri=uri, line=LOAD)
    assert "module triton is missing" in answer["error"]["message"]


# Hover, hints, status


def test_hover_over_the_name_is_a_table_where_markdown_is_drawn(server, kernel):
    uri = server.fresh(kernel)
    server.diagnostics(uri, code("KL001"))
    text = server.hover(uri, NAME)
    assert "| registers a thread    | 40" in text
    assert "| occupancy             | 56 % (registers)" in text
    assert "| shared memory a block | 96 KiB" in text
    assert "nothing here was measured" in text and "datasheet bound" in text
    assert "- the sizes of n are those of the first case" in text
    line = server.hover(uri, LOAD)
    assert line == (
        "- sm_90: 8 loads of 16 B, 1 of 4 B a thread\n"
        "- narrow-access: loads of 4 B\n"
        "- unmasked-access: 24 lanes read past x"
    )
    assert server.hover(uri, 16) is None


def test_hover_without_markdown_is_plain(wire, kernel):
    server, uri = started(wire, kernel)
    server.diagnostics(uri, code("KL001"))
    text = server.hover(uri, NAME)
    assert "registers a thread     40" in text and "|" not in text and "**" not in text
    assert server.hover(uri, STORE).startswith("sm_90: 8 stores of 16 B a thread")


def test_inlay_hints_only_if_wanted(wire, kernel):
    def hints(server, uri):
        area = {"start": {"line": 0, "character": 0}, "end": {"line": 30, "character": 0}}
        params = {"textDocument": {"uri": uri}, "range": area}
        return server.request("textDocument/inlayHint", params)["result"]

    server, uri = started(wire, kernel)
    server.diagnostics(uri, code("KL001"))
    assert hints(server, uri) == []
    workspace = {**CAPABILITIES["workspace"], "inlayHint": {"refreshSupport": True}}
    server, uri = started(
        wire, kernel, settings={"inlayHints": True},
        capabilities={**CAPABILITIES, "workspace": workspace},
    )  # fmt: skip
    server.diagnostics(uri, code("KL001"))
    server.wait(lambda m: m.get("method") == "workspace/inlayHint/refresh")
    (hint,) = hints(server, uri)
    assert hint["label"] == "40 registers, 56 % occupancy (registers)"
    assert hint["position"]["line"] == NAME
    server.drain()
    server.change(uri, "\n\n" + kernel, 2)
    server.diagnostics(uri, lambda found: summary(found)["range"]["start"]["line"] == NAME + 2)
    (hint,) = hints(server, uri)
    assert hint["position"]["line"] == NAME + 2


def test_the_status_is_not_quiescent_while_facts_are_computed(wire, kernel):
    capabilities = {**CAPABILITIES, "experimental": {"serverStatusNotification": True}}
    server, uri = started(
        wire, kernel, capabilities=capabilities, options={"FAKE_FACTS_SECONDS": "0.5"}
    )

    def status(quiescent):
        return server.wait(
            lambda m: (
                m.get("method") == "experimental/serverStatus"
                and m["params"]["quiescent"] is quiescent
            )
        )["params"]["message"]

    status(True)
    assert status(False) == "Kernel: compiling 1 file"
    server.diagnostics(uri, code("KL001"))
    status(True)


# Accidents


def test_a_host_that_crashes_is_started_again(wire, kernel):
    server, uri = started(wire, kernel, facts="crash", options={"FAKE_CRASHES": "1"})
    server.diagnostics(uri, code("KL001"))
    assert len(server.asked(uri)) == 2


def test_a_file_that_crashes_every_host_is_left_alone_until_it_is_edited(wire, kernel):
    server, uri = started(wire, kernel, facts="crash", options={"FAKE_CRASHES": "3"})
    found = server.diagnostics(uri, code("KL002"))
    assert "the facts host stopped 3 times: Segmentation fault (of the fake)" in str(found)
    server.change(uri, kernel.replace("2 * x", "3 * x"), 2)
    server.diagnostics(uri, code("KL001"))
    assert len(server.asked(uri)) == 4


def test_output_that_is_no_answer_is_passed_over(wire, kernel):
    server, uri = started(wire, kernel, facts="noise")
    server.diagnostics(uri, code("KL001"))


def test_large_answers_leave_the_loop_to_the_editor(wire, kernel):
    server, uri = started(wire, kernel, facts="big")
    server.diagnostics(uri, code("KL001"))
    assert server.actions(uri)


@pytest.mark.parametrize("way", ["shutdown", "killed"])
def test_the_host_ends_with_the_server(wire, kernel, tmp_path, way):
    pids = tmp_path / "pids"
    server, uri = started(wire, kernel, options={"FAKE_FACTS_PIDS": str(pids)})
    server.diagnostics(uri, code("KL001"))
    pid = int(pids.read_text())
    assert alive(pid)
    if way == "shutdown":
        server.finish()
    else:
        os.kill(server.process.pid, signal.SIGKILL)
    wait_for(lambda: not alive(pid))


def test_a_closed_file_gets_no_facts(wire, kernel):
    server, uri = started(wire, kernel, options={"FAKE_FACTS_SECONDS": "0.4"})
    wait_for(lambda: len(server.asked(uri)) == 1)
    server.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    time.sleep(0.8)  # the rules of every conversation are checked at its end
    assert server.command("report")["result"]


def wait_for(ready, seconds=60.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if ready():
            return
        time.sleep(0.05)
    raise AssertionError("it did not happen")
