"""What earlier sessions found is offered on opening, without a run."""

from dataclasses import replace

from fake_host import SPEEDUP, candidate, evidence, report

from kernel_lsp.snapshot import analyse
from search_engine.archive.sqlite import RunKey, SqliteArchive
from search_engine.domain.run import ExitReason, Outcome

APPLY = "Apply 1.82x rewrite of double_kernel"


def fill(path, kernel, outcome=Outcome.IMPROVED):
    """An archive with one finished run of the kernel."""
    unit = analyse("file:///k.py", "/k.py", "/", 1, kernel).units[0]
    archive = SqliteArchive(path)
    key = RunKey(unit.hash, unit.name, "/elsewhere/k.py", "w", "sm_90", "H200", "normal")
    run, _ = archive.start_run(key)
    made = candidate(kernel, 256)
    request = {"kernel": unit.name, "path": "/elsewhere/k.py"}
    final = report(request, outcome, ExitReason.STALLED, "")
    found = replace(
        final, run=run, unit_hash=unit.hash, best=made, evidence=evidence(made, SPEEDUP)
    )
    archive.finish_run(run, found)
    archive.close()


def opened(wire, kernel, path):
    server = wire(settings={"archive": {"path": str(path)}})
    server.initialize()
    return server, server.open(kernel)


def test_an_archived_rewrite_is_offered_and_applies(wire, kernel, tmp_path):
    path = tmp_path / "archive.sqlite"
    fill(path, kernel)
    for text, offered in ((kernel, True), (kernel.replace("2 * x", "3 * x"), False)):
        server, uri = opened(wire, text, path)
        if offered:
            server.diagnostics(uri, lambda found: [d["code"] for d in found] == ["KL001"])
        else:
            server.diagnostics(uri, lambda found: True)
            server.command("report")
        assert (APPLY in server.actions(uri)) is offered
        server.finish()


def test_a_run_without_gain_offers_nothing(wire, kernel, tmp_path):
    path = tmp_path / "archive.sqlite"
    fill(path, kernel, Outcome.NOT_IMPROVED)
    server, uri = opened(wire, kernel, path)
    server.diagnostics(uri, lambda found: True)
    server.command("explain", uri=uri, kernel="double_kernel")
    assert APPLY not in server.actions(uri)


def test_a_damaged_archive_is_no_reason_to_stop(wire, kernel, tmp_path):
    path = tmp_path / "archive.sqlite"
    path.write_bytes(b"not a database " * 100)
    server, uri = opened(wire, kernel, path)
    server.diagnostics(uri, lambda found: True)
    assert server.lenses(uri)
