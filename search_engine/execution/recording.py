"""Run the user's own program with a recorder inside, and keep what it saw as workloads.

``record`` starts any command (a script, a module, pytest, torchrun); a ``sitecustomize`` module
put on its ``PYTHONPATH`` loads ``worker/record.py`` into every Python process of it. Afterwards
the observations become one JSON file per entry, in ``.kernel-lsp/workloads``, meant to be
committed. Integer tensors lie beside them by value, in ``values/``.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from search_engine.domain.codec import decode, encode
from search_engine.domain.workload import (
    DTYPES,
    Argument,
    Case,
    Distribution,
    Extent,
    ScalarArgument,
    TensorArgument,
    Values,
    Workload,
    WorkloadSource,
)
from search_engine.execution.environment import scrubbed
from search_engine.execution.staging import stage

_MOST_CASES = 8
"""Cases kept for an entry: the ones that move most bytes over all their calls."""

_VALUES = "values"
"""Folder of the value files, beside the workload files."""

_BOOTSTRAP = '''\
"""Loads the recorder, then the user's own sitecustomize, which this file stands before."""
import contextlib, importlib.util, json, os, sys

_here = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [p for p in sys.path if os.path.abspath(p or ".") != _here]
with contextlib.suppress(Exception):
    _settings = json.loads(os.environ["KERNEL_LSP_RECORD"])
    _spec = importlib.util.spec_from_file_location("_kernel_lsp_record", _settings["recorder"])
    _module = importlib.util.module_from_spec(_spec)
    sys.modules["_kernel_lsp_record"] = _module
    _spec.loader.exec_module(_module)
    _module.install(_settings)
_own = sys.modules.pop("sitecustomize")
with contextlib.suppress(ModuleNotFoundError):
    import sitecustomize
sys.modules.setdefault("sitecustomize", _own)
'''


@dataclass(frozen=True, slots=True)
class RecordedEntry:
    """An entry that was seen: how often it was called, with how many different signatures."""

    module: str
    entry: str
    file: Path
    cases: int
    calls: int


@dataclass(frozen=True, slots=True)
class RecordSummary:
    """What a recorded program did. ``problems`` names entries that could not be recorded."""

    exit_code: int
    entries: tuple[RecordedEntry, ...]
    problems: tuple[str, ...]


async def record(
    command: tuple[str, ...],
    python: str,
    cwd: Path,
    output_folder: Path,
    *,
    env: Mapping[str, str] | None = None,
    output: int | None = asyncio.subprocess.DEVNULL,
    cache_folder: Path | None = None,
) -> RecordSummary:
    """Run ``command`` in ``cwd`` and write the workloads of the entries that it called.

    ``python`` in the command means the chosen interpreter, whose scripts come first on PATH.
    ``output`` receives what the program prints; None lets it through. Raises OSError if the
    command cannot be started; cancelling kills the program with its children.
    """
    with tempfile.TemporaryDirectory(prefix="kernel-lsp-record-") as name:
        folder = Path(name)
        (folder / "inject").mkdir()
        (folder / "inject" / "sitecustomize.py").write_text(_BOOTSTRAP)
        environment = _environment(folder, python, cwd, env or {}, stage(cache_folder))
        exit_code = await _run(_command(command, python), cwd, environment, output)
        entries, problems = keep(folder, output_folder)
    return RecordSummary(exit_code, entries, problems)


def keep(folder: Path, output_folder: Path) -> tuple[tuple[RecordedEntry, ...], tuple[str, ...]]:
    """Turn the observations in ``folder`` into workload files in ``output_folder``.

    A workload names its value files relative to its own folder, so that the folder can be moved.
    """
    groups: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    problems: set[str] = set()
    for seen in _observations(folder):
        if problem := seen["problem"] or _unknown_dtype(seen):
            problems.add(f"{seen['module']}.{seen['entry']}: {problem}")
        else:
            groups[seen["module"], seen["entry"]].append(seen)
    entries: list[RecordedEntry] = []
    for (module, entry), group in sorted(groups.items()):
        group.sort(key=_cost, reverse=True)
        file = workload_file(output_folder, module, entry)
        _write(file, _workload(entry, group[:_MOST_CASES]))
        _keep_values(group[:_MOST_CASES], folder, file.parent / _VALUES)
        calls = sum(int(seen["calls"]) for seen in group)
        entries.append(RecordedEntry(module, entry, file, min(len(group), _MOST_CASES), calls))
    return tuple(entries), tuple(sorted(problems))


def workload_file(folder: Path, module: str, entry: str) -> Path:
    """Where the recorded workload of an entry lies."""
    return folder / f"{module}.{entry}.json"


def recorded(folder: Path, module: str, entry: str) -> Workload | None:
    """The recorded workload of an entry, or None. Raises ValueError if the file is damaged.

    Files of values are named as in the file: relative to ``folder``.
    A script that was run as the main program was recorded under its file's name alone.
    """
    for name in dict.fromkeys((module, module.rpartition(".")[2])):
        file = workload_file(folder, name, entry)
        if file.is_file():
            return decode(Workload, json.loads(file.read_text()))
    return None


def _command(command: tuple[str, ...], python: str) -> tuple[str, ...]:
    """Replace a plain ``python`` by the chosen interpreter."""
    if command[0] in ("python", "python3"):
        return (python, *command[1:])
    return command


def _environment(
    folder: Path, python: str, cwd: Path, env: Mapping[str, str], staged: Path
) -> dict[str, str]:
    environment = {**scrubbed(os.environ), **env}
    inherited = environment.get("PYTHONPATH")
    injected = str(folder / "inject")
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, (injected, inherited)))
    scripts = str(Path(python).absolute().parent)
    environment["PATH"] = os.pathsep.join((scripts, environment.get("PATH", os.defpath)))
    recorder = str(staged / "search_engine" / "worker" / "record.py")
    settings = {"recorder": recorder, "root": str(cwd), "folder": str(folder)}
    environment["KERNEL_LSP_RECORD"] = json.dumps(settings)
    return environment


async def _run(
    command: tuple[str, ...], cwd: Path, environment: dict[str, str], output: int | None
) -> int:
    program = shutil.which(command[0], path=environment["PATH"]) or command[0]
    process = await asyncio.create_subprocess_exec(
        program,
        *command[1:],
        stdin=asyncio.subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        cwd=cwd,
        env=environment,
        start_new_session=True,
    )
    try:
        return await process.wait()
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


def _observations(folder: Path) -> list[dict[str, Any]]:
    """All processes' observations; the same call in two processes counts once, with both calls."""
    merged: dict[str, dict[str, Any]] = {}
    for file in sorted(folder.glob("*.json")):
        for seen in json.loads(file.read_text())["entries"]:
            key = json.dumps([seen["module"], seen["entry"], seen["arguments"]])
            if key in merged:
                merged[key]["calls"] += seen["calls"]
            else:
                merged[key] = seen
    return list(merged.values())


def _cost(seen: dict[str, Any]) -> int:
    """Bytes that all calls of this signature move: frequent and large calls come first."""
    return max(int(seen["calls"]), 1) * max(int(seen["bytes"]), 1)


def _workload(entry: str, group: list[dict[str, Any]]) -> Workload:
    total = sum(_cost(seen) for seen in group)
    cases = tuple(
        Case(
            tuple(_argument(item) for item in seen["arguments"]),
            weight=max(round(_cost(seen) / total, 4), 0.0001),
        )
        for seen in group
    )
    return Workload(entry, WorkloadSource.RECORDED, cases)


def _argument(item: dict[str, Any]) -> Argument:
    if item["kind"] == "scalar":
        return ScalarArgument(item["name"], item["text"])
    return TensorArgument(
        name=item["name"],
        dtype=_DTYPE_NAMES[item["dtype"]],
        extents=tuple(Extent(size) for size in item["shape"]),
        values=_values(item),
        strides=None if item["contiguous"] else tuple(item["strides"]),
        offset=item["offset"],
    )


def _values(item: dict[str, Any]) -> Values:
    found = item.get("values")
    if found is None:
        is_float = "float" in item["dtype"]
        return Values(Distribution.NORMAL if is_float else Distribution.ZEROS)
    if "file" in found:
        return Values(Distribution.RECORDED, file=f"{_VALUES}/{found['file']}")
    return Values(Distribution.INTEGERS, (float(found["low"]), float(found["high"])))


def _unknown_dtype(seen: dict[str, Any]) -> str:
    for item in seen["arguments"]:
        if item["kind"] == "tensor" and item["dtype"] not in _DTYPE_NAMES:
            return f"`{item['name']}` has dtype {item['dtype']}, which workloads do not have"
    return ""


def _keep_values(group: list[dict[str, Any]], folder: Path, target: Path) -> None:
    for seen in group:
        for item in seen["arguments"]:
            if name := item.get("values", {}).get("file"):
                target.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(folder / name, target / name)


def _write(file: Path, workload: Workload) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_suffix(".partial")
    partial.write_text(json.dumps(encode(workload), indent=1) + "\n")
    partial.replace(file)


def _torch_name(dtype: str) -> str:
    special = {"b1": "bool", "bf16": "bfloat16", "f8e4m3": "float8_e4m3fn", "f8e5m2": "float8_e5m2"}
    kinds = {"f": "float", "i": "int", "u": "uint"}
    return special.get(dtype) or kinds[dtype[0]] + dtype[1:]


_DTYPE_NAMES = {_torch_name(dtype): dtype for dtype in DTYPES}
