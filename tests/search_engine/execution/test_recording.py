"""Observations of several processes become one workload an entry, most costly case first."""

import json
from pathlib import Path

import pytest

from search_engine.domain.workload import Distribution, TensorArgument
from search_engine.execution.recording import keep, recorded


def seen(rows: int, calls: int, dtype: str = "float32", **more) -> dict:
    x = {
        "name": "x",
        "kind": "tensor",
        "dtype": dtype,
        "shape": [rows, 8],
        "strides": [8, 1],
        "contiguous": True,
        "offset": 0,
        "bytes": rows * 32,
    }
    return {
        "module": "m",
        "path": "/m.py",
        "entry": "f",
        "arguments": [x | more],
        "calls": calls,
        "bytes": rows * 32,
        "problem": "",
    }


def write(folder: Path, name: str, *entries: dict) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(json.dumps({"entries": entries}))


def test_costly_cases_come_first_and_weights_follow_bytes(tmp_path: Path):
    write(tmp_path / "raw", "1.json", seen(10, 5), seen(1000, 1))
    write(tmp_path / "raw", "2.json", seen(10, 15))
    (entry,), problems = keep(tmp_path / "raw", tmp_path / "out")
    assert (entry.calls, entry.cases, problems) == (21, 2, ())
    workload = recorded(tmp_path / "out", "m", "f")
    assert workload is not None
    assert [case.label for case in workload.cases] == ["x=f32[1000,8]", "x=f32[10,8]"]
    assert [case.weight for case in workload.cases] == [0.8333, 0.1667]


def test_only_the_costliest_cases_are_kept(tmp_path: Path):
    write(tmp_path / "raw", "1.json", *(seen(rows, 1) for rows in range(1, 30)))
    (entry,), _ = keep(tmp_path / "raw", tmp_path / "out")
    workload = recorded(tmp_path / "out", "m", "f")
    assert workload is not None
    assert (entry.cases, entry.calls) == (8, 29)
    assert workload.cases[0].label == "x=f32[29,8]"
    assert len(workload.cases) == 8


def test_large_integers_keep_their_range_and_saved_ones_their_file(tmp_path: Path):
    values = {"low": -3, "high": 70}
    write(tmp_path / "raw", "1.json", seen(4, 1, "int32", values=values))
    keep(tmp_path / "raw", tmp_path / "out")
    workload = recorded(tmp_path / "out", "m", "f")
    assert workload is not None
    (argument,) = workload.cases[0].arguments
    assert isinstance(argument, TensorArgument)
    assert argument.values.distribution is Distribution.INTEGERS
    assert argument.values.parameters == (-3.0, 70.0)


def test_what_cannot_be_a_workload_is_a_problem(tmp_path: Path):
    write(tmp_path / "raw", "1.json", seen(4, 1, "complex64"), seen(4, 1) | {"problem": "no"})
    entries, problems = keep(tmp_path / "raw", tmp_path / "out")
    assert entries == ()
    assert problems == ("m.f: `x` has dtype complex64, which workloads do not have", "m.f: no")


def test_a_script_is_found_by_its_file_name(tmp_path: Path):
    write(tmp_path / "raw", "1.json", seen(4, 1))
    keep(tmp_path / "raw", tmp_path / "out")
    assert recorded(tmp_path / "out", "bench.m", "f") is not None
    assert recorded(tmp_path / "out", "bench.other", "f") is None


def test_a_damaged_file_is_an_error(tmp_path: Path):
    (tmp_path / "m.f.json").write_text('{"type": "Workload"')
    with pytest.raises(ValueError):
        recorded(tmp_path, "m", "f")
