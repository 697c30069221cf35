"""Bad input to the command line: exit code 2, one sentence that names the thing and the remedy."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kernel_lsp.cli import main

KERNEL = """\
import torch
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * 2, mask=mask)


{declaration}
def scale(x):
    out = torch.empty_like(x)
    n = x.numel()
    scale_kernel[(triton.cdiv(n, 64),)](x, out, n, BLOCK=64)
    return out
"""

GOOD = "# kernel-lsp: workload x=f32[1024]"


def write(tmp_path: Path, declaration: str = GOOD, more: str = "") -> Path:
    path = tmp_path / "scale.py"
    path.write_text(KERNEL.format(declaration=declaration) + more)
    return path


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main([*arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--budget", "wallSeconds=0"], "kernelLsp.budget.wallSeconds is 0; it must be above zero"),
        (["--budget", "deviceSeconds=-3"], "kernelLsp.budget.deviceSeconds is -3"),
        (["--budget", "wallSeconds=nan"], "kernelLsp.budget.wallSeconds is nan"),
        (["--budget", "coffee=1"], "kernelLsp.budget.coffee is not a budget; known are"),
        (["--budget", "wallSeconds"], "expected NAME=AMOUNT"),
        (["--target", "sm_12"], "known targets are sm_80"),
    ],
)
def test_bad_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    code, out, err = run(capsys, "optimize", str(write(tmp_path)), *arguments)
    assert (code, out) == (2, "")
    assert sentence in err


def test_json_prints_a_document_for_bad_input_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import jsonschema

    code, out, err = run(capsys, "optimize", f"{write(tmp_path)}::nope", "--json")
    document = json.loads(out)
    schema = json.loads((Path(__file__).parents[3] / "schemas" / "optimize.json").read_text())
    jsonschema.validate(document, schema)
    assert code == 2
    assert document["outcome"] == "failed"
    assert document["message"] in err


def test_missing_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "optimize", str(tmp_path / "none.py"))
    assert code == 2
    assert "none.py: No such file" in err


def test_file_of_another_language(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "k.rs"
    path.write_text("fn main() {}")
    code, _, err = run(capsys, "optimize", str(path))
    assert code == 2
    assert "kernels are found in .py files" in err


def test_unknown_kernel_lists_the_known_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, "optimize", f"{write(tmp_path)}::nope")
    assert code == 2
    assert "no kernel named nope; the file has scale_kernel" in err


def test_syntax_error_is_named_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, more="\ndef broken(:\n")
    code, _, err = run(capsys, "optimize", str(path))
    assert code == 2
    line = path.read_text().splitlines().index("def broken(:") + 1
    assert f"scale.py:{line}" in err


def test_no_workload_says_how_to_write_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, "optimize", str(write(tmp_path, declaration="# nothing")))
    assert code == 2
    assert "no workload" in err
    assert "# kernel-lsp: workload" in err
    assert "kernel-lsp record" in err


def test_malformed_workload_is_named_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, declaration="# kernel-lsp: workload x=f32[")
    code, _, err = run(capsys, "optimize", str(path))
    assert code == 2
    line = next(i for i, t in enumerate(path.read_text().splitlines(), 1) if "workload x" in t)
    assert f"scale.py:{line}:" in err


def test_mistake_in_the_reference_is_not_passed_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    declaration = f"{GOOD}\n# kernel-lsp: reference x * nothing"
    path = write(tmp_path, declaration=declaration)
    code, _, err = run(capsys, "optimize", str(path))
    assert code == 2
    line = next(i for i, t in enumerate(path.read_text().splitlines(), 1) if "reference" in t)
    assert f"scale.py:{line}:" in err
    assert "nothing" in err


def test_launch_in_another_file_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "scale.py"
    path.write_text(KERNEL.format(declaration=GOOD).split("# kernel-lsp")[0])
    code, _, err = run(capsys, "optimize", str(path))
    assert code == 2
    assert "no function in this file launches it" in err


def test_record_without_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "record")
    assert code == 2
    assert "kernel-lsp record -- python" in err
