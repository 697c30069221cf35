"""Reports of slow kernels, each rebuilt as a bad and a good file, compiled and traced for real.

``cases/NAME_bad.py`` marks lines with ``# expect: KL106`` (several codes are separated by spaces):
each code must be found on its line. ``cases/NAME_good.py`` is the same kernel without the pattern:
none of those codes may be found anywhere in it. In ``cases/NAME_innocent.py`` nothing may be found:
patterns that look slow and are not.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from case_runs import CaseFile, expected, run_files

pytest.importorskip("triton")

CASES = Path(__file__).parent / "cases"
NAMES = sorted(path.stem.removesuffix("_bad") for path in CASES.glob("*_bad.py"))
INNOCENT = sorted(path.stem for path in CASES.glob("*_innocent.py"))


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> dict[Path, CaseFile]:
    return run_files(sorted(CASES.glob("*.py")), tmp_path_factory.mktemp("cases"))


@pytest.mark.parametrize("name", NAMES)
def test_the_pattern_is_found_on_its_line(files: dict[Path, CaseFile], name: str) -> None:
    file = files[CASES / f"{name}_bad.py"]
    assert not file.problems
    found = {(item.line, item.code) for item in file.findings()}
    wanted = set(expected(file.path.read_text()))
    assert wanted, "the file expects nothing"
    assert wanted <= found, "\n".join(
        f"{item.line + 1}: {item.code} {item.message}" for item in file.findings()
    )


@pytest.mark.parametrize("name", NAMES)
def test_the_kernel_without_the_pattern_is_left_alone(
    files: dict[Path, CaseFile], name: str
) -> None:
    file = files[CASES / f"{name}_good.py"]
    assert not file.problems
    assert file.subjects
    assert all(subject.launches for subject in file.subjects)
    codes = {code for _, code in expected(files[CASES / f"{name}_bad.py"].path.read_text())}
    wrong = [item for item in file.findings() if item.code in codes]
    assert not wrong, "\n".join(f"{item.line + 1}: {item.code} {item.message}" for item in wrong)


@pytest.mark.parametrize("name", INNOCENT)
def test_what_only_looks_slow_is_left_alone(files: dict[Path, CaseFile], name: str) -> None:
    file = files[CASES / f"{name}.py"]
    assert not file.problems
    assert all(subject.launches for subject in file.subjects)
    found = [f"{item.line + 1}: {item.code} {item.message}" for item in file.findings()]
    assert not found, "\n".join(found)
