"""Note what the user's own program passes to the functions that launch its kernels.

``execution/recording.py`` injects this file into a program that is otherwise untouched: it is
loaded by a ``sitecustomize`` module, waits until Triton is imported, wraps the launch, and writes
one file of observations per process. It stands alone (no import from this project), because it
must not change what the program can import, and it never lets an error of its own reach it.

Format of the file: ``{"entries": [{"module", "path", "entry", "arguments", "calls", "bytes",
"problem"}]}``; an argument is ``{"name", "kind": "tensor" | "scalar", ...}``.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib.abc
import importlib.util
import inspect
import json
import math
import os
import sys
import types
from pathlib import Path
from typing import Any

_LARGEST_VALUES_BYTES = 64 * 1024 * 1024
"""Integer tensors above this size are described by their range instead of saved."""

_MOST_SIGNATURES = 256
"""A program with more different calls than this is recorded up to here."""


class Recorder:
    """Observations of this process, written to ``folder`` whenever a new signature is seen."""

    def __init__(self, root: Path, folder: Path) -> None:
        self._root = str(root) + os.sep
        self._folder = folder
        self._trials = 0
        self._seen: dict[tuple[Any, ...], dict[str, Any]] = {}
        os.register_at_fork(after_in_child=self._seen.clear)
        atexit.register(self.write)

    def wrap(self) -> None:
        """Wrap Triton's launch and its autotuner, whose trials are not calls of the user's."""
        from triton.runtime.autotuner import Autotuner
        from triton.runtime.jit import JITFunction

        self._wrap_run(JITFunction)
        if os.environ.get("TRITON_INTERPRET") == "1":
            from triton.runtime.interpreter import InterpretedFunction

            self._wrap_run(InterpretedFunction)
        self._wrap_bench(Autotuner)

    def write(self) -> None:
        """Write all observations of this process, replacing the file atomically."""
        if not self._seen:
            return
        with contextlib.suppress(OSError):
            file = self._folder / f"{os.getpid()}.json"
            partial = file.with_suffix(".partial")
            partial.write_text(json.dumps({"entries": list(self._seen.values())}))
            partial.replace(file)

    def _wrap_run(self, owner: Any) -> None:
        original = owner.run
        recorder = self

        def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
            if not warmup and not recorder._trials:
                # An error here must never become an error of the user's program.
                with contextlib.suppress(Exception):
                    recorder._note(sys._getframe(1))
            return original(self, *args, grid=grid, warmup=warmup, **kwargs)

        owner.run = run

    def _wrap_bench(self, owner: Any) -> None:
        original = owner._bench
        recorder = self

        def bench(self: Any, *args: Any, **kwargs: Any) -> Any:
            recorder._trials += 1
            try:
                return original(self, *args, **kwargs)
            finally:
                recorder._trials -= 1

        owner._bench = bench

    def _note(self, frame: types.FrameType | None) -> None:
        """Note the function that launches, and its callers in the same file."""
        while frame is not None and not self._is_users(frame):
            frame = frame.f_back
        if frame is None or _capturing():
            return
        file, site = frame.f_code.co_filename, (frame.f_code, frame.f_lasti)
        while frame is not None:
            if frame.f_code.co_filename == file and _is_function(frame.f_code):
                self._note_entry(frame, site)
            frame = frame.f_back

    def _note_entry(self, frame: types.FrameType, site: tuple[Any, int]) -> None:
        names, values = _arguments(frame)
        signature = tuple(_signature(value) for value in values)
        key = (frame.f_code, signature)
        known = self._seen.get(key)
        if known is None and len(self._seen) < _MOST_SIGNATURES:
            known = self._seen[key] = self._describe(frame, names, values)
            known["site"] = hash(site)
            self.write()
        if known is not None and known["site"] == hash(site):
            known["calls"] += 1

    def _describe(
        self, frame: types.FrameType, names: list[str], values: list[Any]
    ) -> dict[str, Any]:
        arguments: list[dict[str, Any]] = []
        problem = ""
        for name, value in zip(names, values):  # noqa: B905 (both come from one frame)
            described = self._argument(name, value)
            if described is None:
                problem = (
                    f"`{name}` is a {type(value).__name__.lstrip('_')}, which cannot be recorded"
                )
            else:
                arguments.append(described)
        if not any(item["kind"] == "tensor" for item in arguments):
            problem = problem or "no argument is a tensor"
        path = Path(frame.f_code.co_filename).resolve()
        return {
            "module": _module(frame, path),
            "path": str(path),
            "entry": _qualified_name(frame.f_code),
            "arguments": arguments,
            "calls": 0,
            "bytes": sum(item.get("bytes", 0) for item in arguments),
            "problem": problem,
        }

    def _argument(self, name: str, value: Any) -> dict[str, Any] | None:
        import torch

        if isinstance(value, torch.Tensor):
            return {"name": name, **_tensor(value, self._folder)}
        expression = _expression(value)
        return None if expression is None else {"name": name, "kind": "scalar", "text": expression}

    def _is_users(self, frame: types.FrameType) -> bool:
        file = frame.f_code.co_filename
        return (
            os.path.realpath(file).startswith(self._root)
            and f"{os.sep}site-packages{os.sep}" not in file
        )


def install(settings: dict[str, str]) -> None:
    """Record as soon as the program imports Triton. ``settings`` has ``root`` and ``folder``."""
    recorder = Recorder(Path(settings["root"]).resolve(), Path(settings["folder"]))
    if "triton" in sys.modules:
        recorder.wrap()
    else:
        sys.meta_path.insert(0, _TritonWatcher(recorder))


class _TritonWatcher(importlib.abc.MetaPathFinder):
    """Calls the recorder once ``import triton`` has run, and is gone from then on."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        """The real spec of Triton, with a loader that calls the recorder afterwards."""
        if fullname != "triton":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            loader: Any = spec.loader
            execute = loader.exec_module

            def exec_module(module: types.ModuleType) -> None:
                execute(module)
                with contextlib.suppress(Exception):  # never the user's problem
                    self._recorder.wrap()

            loader.exec_module = exec_module
        return spec


def _capturing() -> bool:
    """True while a graph is captured: reading values would break the capture."""
    import torch

    return torch.cuda.is_available() and torch.cuda.is_current_stream_capturing()


def _is_function(code: types.CodeType) -> bool:
    """Named functions that other code can call: no modules, comprehensions or closures."""
    return not code.co_name.startswith("<") and "<locals>" not in _qualified_name(code)


def _qualified_name(code: types.CodeType) -> str:
    return str(getattr(code, "co_qualname", code.co_name))  # co_qualname: Python 3.11 and later


def _arguments(frame: types.FrameType) -> tuple[list[str], list[Any]]:
    """Names and present values of the parameters, ``*args`` and ``**kwargs`` included if used."""
    code, values = frame.f_code, frame.f_locals
    count = code.co_argcount + code.co_kwonlyargcount
    names = list(code.co_varnames[:count])
    for flag in (inspect.CO_VARARGS, inspect.CO_VARKEYWORDS):
        if code.co_flags & flag:
            if values.get(code.co_varnames[count]):
                names.append(code.co_varnames[count])
                values = {**values, names[-1]: _PackedArguments()}
            count += 1
    return names, [values.get(name) for name in names]


class _PackedArguments:
    """Stands for ``*args`` or ``**kwargs``: a workload calls by name, so these stay unknown."""


def _module(frame: types.FrameType, path: Path) -> str:
    name = str(frame.f_globals.get("__name__", path.stem))
    return path.stem if name == "__main__" else name


def _signature(value: Any) -> Any:
    import torch

    if isinstance(value, torch.Tensor):
        return (value.dtype, tuple(value.shape), value.stride(), value.storage_offset())
    expression = _expression(value)
    return type(value) if expression is None else expression


def _expression(value: Any) -> str | None:
    """Python text that evaluates to the value, for the values that a workload may hold."""
    if isinstance(value, float) and not math.isfinite(value):
        return f"float('{value}')"
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    if isinstance(value, (tuple, list)):
        parts = [_expression(item) for item in value]
        if all(part is not None for part in parts):
            return repr(type(value)(value))
        return None
    text = str(value)
    return text if type(value).__module__ == "torch" and text.startswith("torch.") else None


def _tensor(value: Any, folder: Path) -> dict[str, Any]:
    size = int(value.numel() * value.element_size())
    described: dict[str, Any] = {
        "kind": "tensor",
        "dtype": str(value.dtype).removeprefix("torch."),
        "shape": list(value.shape),
        "strides": list(value.stride()),
        "contiguous": bool(value.is_contiguous()),
        "offset": int(value.storage_offset()),
        "bytes": size,
    }
    if not value.dtype.is_floating_point and not value.dtype.is_complex and value.numel():
        described["values"] = _integer_values(value, size, folder)
    return described


def _integer_values(value: Any, size: int, folder: Path) -> dict[str, Any]:
    """Indices and offsets are saved: drawn at random they would point outside their tensors."""
    import hashlib

    import torch

    if size > _LARGEST_VALUES_BYTES:
        return {"low": int(value.min()), "high": int(value.max())}
    values = value.detach().cpu().contiguous()
    raw = bytes(values.reshape(-1).view(torch.uint8).numpy()) if _has_numpy() else b""
    name = hashlib.sha256(raw or repr(values.tolist()).encode()).hexdigest()[:16] + ".pt"
    if not (folder / name).exists():
        torch.save(values, folder / name)
    return {"file": name}


def _has_numpy() -> bool:
    return importlib.util.find_spec("numpy") is not None
