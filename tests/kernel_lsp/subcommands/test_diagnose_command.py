"""``kernel-lsp diagnose``: what it prints, what it fails on, and what it says of bad input."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from fake_executor import answer, line_with, text_of

from kernel_lsp.cli import main
from search_engine.domain.job import (
    Completed,
    InspectJob,
    InspectReply,
    Job,
    JobResult,
    Refusal,
    RefusalKind,
)

ROOT = Path(__file__).parents[3]
SCHEMA = json.loads((ROOT / "schemas" / "diagnose.json").read_text())
LOAD = line_with(text_of("a"), "tl.load")
Workers = Callable[[Callable[[Job], JobResult]], None]


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: Workers) -> None:
    """Findings of the facts of ``fake_executor`` alone, whatever the checks of the day say."""
    del workers
    monkeypatch.chdir(tmp_path)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["diagnose", "--python", "/nowhere/python", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def write(text: str, name: str = "k.py") -> str:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return name


def spilling(job: Job) -> JobResult:
    """Everything compiles, with half a kilobyte spilled in the loop; nothing is traced."""
    result = answer(job)
    if not isinstance(job, InspectJob):
        return Completed(Refusal(RefusalKind.UNSUPPORTED, "inline assembly"), 0.1)
    assert isinstance(result, Completed)
    assert isinstance(result.reply, InspectReply)
    reply = result.reply
    launches = tuple(
        replace(c, facts=replace(c.facts, registers=255, spill_bytes=512)) for c in reply.launches
    )
    return Completed(replace(reply, launches=launches), 0.1)


def broken(line: int | None) -> Callable[[Job], JobResult]:
    refusal = Refusal(RefusalKind.COMPILE, "CompilationError: no\nsuch thing", line)
    return lambda job: Completed(refusal, 0.1)


def test_text_names_place_code_kernel_and_targets_and_sums_up(
    capsys: pytest.CaptureFixture[str], workers: Workers
) -> None:
    text = text_of("a")
    line = line_with(text, "tl.load")
    workers(broken(line))
    code, out, err = run(capsys, write(text), "--target", "sm_90,gfx942")
    assert (code, err) == (0, "")
    assert out == (
        f"k.py:{line + 1}:9: KL101 compile-error: warning: CompilationError: no such thing "
        "[a_kernel, sm_90, gfx942]\n"
    )
    workers(spilling)
    _, out, _ = run(capsys, "k.py")
    summary = out.splitlines()[-2]
    assert summary.startswith(
        "k.py: a_kernel on sm_90: 255 registers, 512 B spilled, 1,024 B shared, occupancy 12% "
        "(registers), loads 8×4 B, stores 2×16 B"
    )
    assert out.splitlines()[-1] == "    accesses were not counted: inline assembly"


def test_json_is_of_the_schema_and_keeps_targets_apart(
    capsys: pytest.CaptureFixture[str], workers: Workers
) -> None:
    text = text_of("a", "b+c", declaration="# kernel-lsp: workload x=f32[64]")
    write(text.replace("    for first", "    # ü ü\n    for first"))
    for reply in (answer, spilling, broken(LOAD), broken(None)):
        workers(reply)
        code, out, _ = run(capsys, "k.py", "--format", "json", "--target", "sm_80,gfx942", "--all")
        document = json.loads(out)
        jsonschema.validate(document, SCHEMA)
        assert code == 0
    assert [(f["code"], f["target"]) for f in document["findings"]][:2] == [
        ("KL101", "sm_80"), ("KL101", "gfx942"),
    ]  # fmt: skip
    assert document["kernels"] == []


def test_json_of_a_file_without_facts(capsys: pytest.CaptureFixture[str]) -> None:
    write(text_of("a", declaration="# kernel-lsp: workload y=f32[8]"))
    code, out, _ = run(capsys, "k.py", "--format", "json", "--no-compile")
    document = json.loads(out)
    jsonschema.validate(document, SCHEMA)
    assert code == 0
    assert "KL802" in {finding["code"] for finding in document["findings"]}
    assert document["kernels"] == []


def test_columns_are_characters(capsys: pytest.CaptureFixture[str]) -> None:
    write(text_of("a") + "x = 'üüü'; 𝛼 = (((\n")
    _, out, _ = run(capsys, "k.py", "--format", "json", "--no-compile")
    (finding,) = json.loads(out)["findings"]
    row = Path("k.py").read_text().splitlines()[finding["line"] - 1]
    assert 1 <= finding["column"] <= len(row) + 1


def test_sarif_has_what_the_standard_requires(
    capsys: pytest.CaptureFixture[str], workers: Workers
) -> None:
    write(text_of("a"), "a folder/k.py")
    workers(broken(LOAD))
    code, out, _ = run(capsys, "a folder", "--format", "sarif")
    document = json.loads(out)
    assert code == 0
    assert document["version"] == "2.1.0"
    (sarif_run,) = document["runs"]
    driver = sarif_run["tool"]["driver"]
    assert driver["name"] == "kernel-lsp"
    ids = [rule["id"] for rule in driver["rules"]]
    assert len(set(ids)) == len(ids)
    (result,) = sarif_run["results"]
    assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == "KL101"
    assert result["message"]["text"]
    assert result["level"] in ("none", "note", "warning", "error")
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "a%20folder/k.py"
    region = place["region"]
    assert (region["startLine"], region["startColumn"]) == (LOAD + 1, 9)
    assert (region["endLine"], region["endColumn"]) >= (LOAD + 1, 9)
    assert result["partialFingerprints"]["kernelLsp/v1"]
    assert set(result) <= {
        "ruleId", "ruleIndex", "level", "message", "locations", "relatedLocations",
        "partialFingerprints", "properties",
    }  # fmt: skip


def test_github_annotations_are_one_line_each(
    capsys: pytest.CaptureFixture[str], workers: Workers
) -> None:
    write(text_of("a"), "a,b/k.py")
    workers(broken(LOAD))
    _, out, _ = run(capsys, "a,b/k.py", "--format", "github")
    place = f"line={LOAD + 1},endLine={LOAD + 1},col=9"
    assert out == (
        f"::warning file=a%2Cb/k.py,{place},title=KL101 compile-error::"
        "CompilationError: no%0Asuch thing [a_kernel, sm_90]\n"
    )


@pytest.mark.parametrize(
    ("declaration", "fail_on", "expected"),
    [
        ("# kernel-lsp: workload y=f32[8]", "warning", 1),
        ("# kernel-lsp: workload y=f32[8]", "never", 0),
        ("# nothing", "warning", 0),
        ("# nothing", "hint", 1),
        ("# kernel-lsp: workload x=f32[8]", "hint", 0),
    ],
)
def test_what_it_fails_on(
    capsys: pytest.CaptureFixture[str], declaration: str, fail_on: str, expected: int
) -> None:
    write(text_of("a", declaration=declaration))
    assert run(capsys, "k.py", "--no-compile", "--fail-on", fail_on)[0] == expected


def test_a_baseline_lets_only_new_findings_fail(
    capsys: pytest.CaptureFixture[str], workers: Workers
) -> None:
    text = text_of("a", "b")
    line = line_with(text, "tl.load")
    workers(broken(line))
    write(text, "src/k.py")
    assert run(capsys, "src", "--write-baseline", "known.json")[0] == 0
    known = ("src", "--baseline", "known.json", "--fail-on", "warning")
    code, out, _ = run(capsys, *known)
    assert (code, "KL101" in out) == (0, False)

    moved = "# one more line\n" + text.replace("mask=offsets < n)\n", "mask=offsets<n  )\n", 1)
    write(moved, "src/k.py")
    workers(broken(line + 1))
    assert run(capsys, *known)[0] == 0, "it has only moved and been formatted"
    workers(broken(line + 2))
    code, out, _ = run(capsys, *known)
    assert code == 1, "another statement is to blame now"
    assert out.count("KL101") == 1


def test_a_baseline_counts_equal_statements(
    capsys: pytest.CaptureFixture[str], workers: Workers
) -> None:
    del workers
    bad = "# kernel-lsp: workload y=f32[8]"
    write(text_of("a", declaration=bad))
    run(capsys, "k.py", "--no-compile", "--write-baseline", "known.json")
    write(text_of("a", declaration=f"{bad}\n{bad}"))
    known = ("k.py", "--no-compile", "--baseline", "known.json", "--format", "json")
    found = json.loads(run(capsys, *known)[1])["findings"]
    assert [item["code"] for item in found].count("KL802") == 1


def test_a_folder_is_searched_for_kernels_and_nothing_else(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = text_of("a", declaration="# nothing")
    for name in ("b.py", "a/deep/k.py", "venv/k.py", ".hidden/k.py", "env/lib/k.py", "build/k.py"):
        write(text, f"top/{name}")
    write("", "top/env/pyvenv.cfg")
    write("# @generated by a tool\n" + text, "top/made.py")
    write("# AOT ID: ['0_inference']\n" + text, "top/inductor.py")
    write("import triton\n", "top/no_kernel.py")
    write(text, "top/notes.txt")
    Path("top/binary.py").write_bytes(b"\x00\xff triton")
    code, out, err = run(capsys, "top", "top/b.py", "--no-compile", "--format", "json")
    assert code == 0
    assert [item["path"] for item in json.loads(out)["findings"]] == ["top/b.py", "top/a/deep/k.py"]
    assert "top/binary.py: not UTF-8 text at byte 1; left out" in err


def test_a_named_file_is_taken_whatever_is_in_it(capsys: pytest.CaptureFixture[str]) -> None:
    write("# @generated\n" + text_of("a", declaration="# nothing"), "made.py")
    assert "KL803" in run(capsys, "made.py", "--no-compile")[1]


def test_a_folder_without_kernels_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    write("x = 1\n", "empty/x.py")
    code, out, err = run(capsys, "empty")
    assert (code, out) == (0, "")
    assert "empty: no file with a Triton kernel" in err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["k.py", "--target", "sm_12"], "unknown target 'sm_12'; known targets are sm_80"),
        (["missing.py"], "missing.py: No such file"),
        (["k.cu"], "kernels are found in .py files"),
        (["binary.py"], "binary.py: not UTF-8 text at byte 0"),
        (["k.py", "--baseline", "missing.json"], "--write-baseline makes one"),
        (["k.py", "--baseline", "k.py"], "k.py: not a baseline"),
        (["k.py", "--no-compile", "--write-baseline", "no/where.json"], "No such file"),
    ],
)
def test_bad_input_is_named(
    capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    write(text_of("a"))
    write("", "k.cu")
    Path("binary.py").write_bytes(b"\xff\xfe")
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert sentence in err
    assert err.count("\n") == 1


def test_a_file_that_does_not_parse_says_where(capsys: pytest.CaptureFixture[str]) -> None:
    write(text_of("a") + "def broken(:\n    pass\n")
    code, out, _ = run(capsys, "k.py")
    assert code == 0
    assert "KL002 no-data: no data: does not parse here" in out


def test_without_triton_the_text_still_speaks(
    capsys: pytest.CaptureFixture[str], workers: Workers
) -> None:
    missing = Refusal(RefusalKind.ENVIRONMENT, "Python module `triton` is missing in python")
    workers(lambda job: Completed(missing, 0.1))
    write(text_of("a", "b", declaration="# nothing"))
    code, out, _ = run(capsys, "k.py")
    assert code == 0
    assert out.count("KL803") == 2
    assert out.count("KL002 no-data: no data: Python module `triton` is missing") == 1


def test_the_projects_settings_are_read(capsys: pytest.CaptureFixture[str]) -> None:
    write('[tool.kernel-lsp]\nignore = ["no-workload"]\n', "pyproject.toml")
    write(text_of("a", declaration="# nothing"))
    assert run(capsys, "k.py", "--no-compile")[1] == ""


def test_a_long_file_is_read_in_time(capsys: pytest.CaptureFixture[str]) -> None:
    names = [f"k{index}" for index in range(900)]
    write(text_of(*names, declaration="# nothing"))
    assert len(Path("k.py").read_text().splitlines()) > 13_000
    code, out, _ = run(capsys, "k.py", "--no-compile")
    assert (code, out.count("KL803")) == (0, 900)


def test_the_working_folder_does_not_matter(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(text_of("a", declaration="# nothing"), "src/k.py")
    run(capsys, "src", "--no-compile", "--write-baseline", "known.json")
    monkeypatch.chdir("src")
    arguments = ("k.py", "--no-compile", "--baseline", os.path.join("..", "known.json"))
    assert run(capsys, *arguments)[1] == ""
