"""Execute one version of the user's module under its original name and package.

A version is a complete text. It is written to a scratch file, because Triton asks
``inspect.getsource`` for the source of each kernel and finds it by file name, and executed as the
original module: relative imports, ``src`` layouts, module constants and top-level code work as in
the user's program, and line numbers equal those of the text. Any number of versions live side by
side; the user's own entry in ``sys.modules`` is put back after each load.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.machinery
import os
import sys
import tempfile
import types
from collections import OrderedDict
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

from search_engine.domain.candidate import python_text
from search_engine.domain.job import Refusal, RefusalKind, Source

SETTING = "kernelLsp.worker.python"
"""The setting that chooses the interpreter; named in every message about a missing module."""

_KEPT_VERSIONS = 64
"""Loaded versions that stay in memory, so that a worker recompiles no version between jobs."""

_loaded: OrderedDict[tuple[str, str, str], types.ModuleType] = OrderedDict()


class LoadError(Exception):
    """A version that cannot be loaded, with the refusal that says why."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


def load(source: Source) -> types.ModuleType:
    """The executed module of a version; the same object for the same text.

    Raises LoadError: ENVIRONMENT for a missing module, COMPILE for everything else, with the
    0-based line in the version's text where one is known.
    """
    key = (source.module, source.path, hashlib.sha256(source.text.encode()).hexdigest())
    if key in _loaded:
        _loaded.move_to_end(key)
        return _loaded[key]
    module = load_fresh(source)
    _loaded[key] = module
    while len(_loaded) > _KEPT_VERSIONS:
        _loaded.popitem(last=False)
    return module


def load_fresh(source: Source) -> types.ModuleType:
    """As ``load``, but execute the text again even if it was loaded before."""
    scratch = scratch_file(source)
    with _Refusing(source):
        code = compile(python_text(source.text), str(scratch), "exec", dont_inherit=True)
        _extend_path(source)
        return _execute(source, code, scratch)


def entry(module: types.ModuleType, source: Source) -> Callable[..., Any]:
    """The host function that ``source.entry`` names (dotted for methods). Raises LoadError."""
    found: Any = module
    for name in source.entry.split("."):
        if not hasattr(found, name):
            message = f"`{source.entry}` is not defined in module `{source.module}`"
            raise LoadError(Refusal(RefusalKind.COMPILE, message))
        found = getattr(found, name)
    if not callable(found):
        message = f"`{source.entry}` in module `{source.module}` is not callable"
        raise LoadError(Refusal(RefusalKind.COMPILE, message))
    return found


def scratch_file(source: Source) -> Path:
    """The file that holds the version's text; its name is its content's hash."""
    digest = hashlib.sha256(f"{source.module}\0{source.text}".encode()).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / "versions" / digest
    file = folder / (source.module.rpartition(".")[2] + ".py")
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        partial = folder / f".{os.getpid()}"
        partial.write_bytes(source.text.encode())
        partial.replace(file)
    return file


def line_of(error: BaseException, source: Source) -> int | None:
    """0-based line of the version's text that an exception points at, or None."""
    name = str(scratch_file(source))
    if isinstance(error, SyntaxError) and error.filename == name and error.lineno:
        return error.lineno - 1
    line = None
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == name:
            line = traceback.tb_lineno - 1
        traceback = traceback.tb_next
    return line


def missing_module(name: str) -> Refusal:
    """The refusal for a module that this interpreter does not have."""
    message = (
        f"Python module `{name}` is missing in {sys.executable}. "
        f"Install it there, or choose another interpreter with `{SETTING}`."
    )
    return Refusal(RefusalKind.ENVIRONMENT, message)


def _execute(source: Source, code: types.CodeType, scratch: Path) -> types.ModuleType:
    package = source.module.rpartition(".")[0]
    if package:
        importlib.import_module(package)
    module = types.ModuleType(source.module)
    module.__file__ = source.path
    module.__package__ = package
    spec = importlib.machinery.ModuleSpec(source.module, None, origin=str(scratch))
    module.__spec__ = spec
    before = set(sys.modules)
    with _standing_in(source.module, module):
        exec(code, module.__dict__)  # the purpose of this file
    _evict_captures(module, before)
    return module


@contextlib.contextmanager
def _standing_in(name: str, module: types.ModuleType) -> Generator[None]:
    previous = sys.modules.get(name)
    sys.modules[name] = module
    try:
        yield
    finally:
        if previous is None:
            sys.modules.pop(name, None)
        else:
            sys.modules[name] = previous


def _evict_captures(module: types.ModuleType, before: set[str]) -> None:
    """Forget siblings that imported this version back: another version must not meet them."""
    for name in set(sys.modules) - before:
        sibling = sys.modules[name]
        values = list(getattr(sibling, "__dict__", {}).values())
        if any(value is module or _globals(value) is module.__dict__ for value in values):
            del sys.modules[name]


def _globals(value: Any) -> Any:
    """The global namespace of a function, also inside Triton's wrappers."""
    function = value
    while type(function).__module__.startswith("triton.") and hasattr(function, "fn"):
        function = function.fn
    return function.__globals__ if isinstance(function, types.FunctionType) else None


def _extend_path(source: Source) -> None:
    """Append the folder that holds the top package, then the workspace root."""
    base = Path(source.path).resolve().parents
    depth = source.module.count(".") + (1 if Path(source.path).name == "__init__.py" else 0)
    folders = [str(base[depth])] if depth < len(base) else []
    for folder in [*folders, str(Path(source.root).resolve())]:
        if folder not in sys.path:
            sys.path.append(folder)


class _Refusing:
    """Turn whatever the user's top-level code raises into a LoadError."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if isinstance(error, SystemExit) or (
            isinstance(error, Exception) and not isinstance(error, LoadError)
        ):
            raise LoadError(_refusal(error, self._source)) from error


def _refusal(error: BaseException, source: Source) -> Refusal:
    line = line_of(error, source)
    if isinstance(error, ModuleNotFoundError) and error.name:
        return Refusal(RefusalKind.ENVIRONMENT, missing_module(error.name).message, line)
    if isinstance(error, SyntaxError) and line is not None:
        return Refusal(RefusalKind.COMPILE, f"SyntaxError: {error.msg}", line)
    message = f"{type(error).__name__} while importing `{source.module}`: {error}"
    return Refusal(RefusalKind.COMPILE, message, line)
