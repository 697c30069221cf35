"""What facts depend on, as one hash: everything that a worker would see, and nothing else.

Positions, comments and formatting are left out, so that facts outlive edits that cannot change
them. Project files that the module imports count by their content; installed packages do not: they
are named by the fingerprint of the interpreter.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from search_engine.domain.codec import encode
from search_engine.domain.job import AssumedLaunch
from search_engine.domain.kernel import Module, Unit
from search_engine.domain.workload import Case, TensorArgument, Workload
from search_engine.frontends.syntax_digest import syntax_digest
from search_engine.source import import_root

VERSION = 1
"""Raised whenever the meaning of what is kept changes."""

_MOST_FILES = 300
"""Imported project files that are looked at: further ones are taken to stay as they are."""
_IMPORT = re.compile(
    r"^[ \t]*(?:import[ \t]+(?P<modules>[\w., \t]+)"
    r"|from[ \t]+(?P<base>[.\w]+)[ \t]+import[ \t]+(?P<names>\([^)]*\)|[^\n#]+))",
    re.M,
)


def code_key(
    unit: Unit, context: str, run: WorkloadRun | AssumedLaunch, target: str, environment: str
) -> str:
    """Key of what the compiler makes of a unit for one target.

    ``context`` is the ``module_context`` of its file, ``environment`` the interpreter's
    fingerprint.
    """
    return _digest("code", target, *_common(unit, context, run, environment))


def trace_key(unit: Unit, context: str, run: WorkloadRun, environment: str) -> str:
    """Key of what the programs of a unit ask of memory, which no target changes."""
    return _digest("trace", *_common(unit, context, run, environment))


def module_context(module: Module, root: Path) -> str:
    """Hash of what a unit can see of its file and of the project files that it imports."""
    path = Path(module.path)
    files = (f"{file} {digest}" for file, digest in imported_files(path, module.text, root))
    return _digest(import_root(path)[1], _surroundings(module), *files)


@dataclasses.dataclass(frozen=True, slots=True)
class WorkloadRun:
    """One case of a workload: what a worker calls the entry with."""

    workload: Workload
    case: int

    @property
    def arguments(self) -> Case:
        """The case itself."""
        return self.workload.cases[self.case]


def _common(
    unit: Unit, context: str, run: WorkloadRun | AssumedLaunch, environment: str
) -> Iterator[str]:
    yield str(VERSION)
    yield environment
    yield unit.hash
    yield f"{unit.kernel.qualified_name}#{unit.kernel.ordinal}"
    yield context
    yield json.dumps(_run(run), sort_keys=True)


def _digest(*parts: str) -> str:
    return hashlib.sha256("\x00".join(parts).encode(errors="replace")).hexdigest()


def _surroundings(module: Module) -> str:
    """Digest of the text outside kernels and entries: what runs when the module is imported."""
    data = module.text.encode(errors="surrogatepass")
    rest: list[bytes] = []
    end = 0
    parts = (*module.kernels, *module.entries)
    for span in sorted((part.span for part in parts), key=lambda span: span.start):
        rest.append(data[end : max(end, span.start)])
        end = max(end, span.end)
    rest.append(data[end:])
    return syntax_digest("\n".join(part.decode(errors="replace") for part in rest)).hash


def _run(run: WorkloadRun | AssumedLaunch) -> Any:
    """What the worker is told, without lines and without what only a search looks at."""
    if isinstance(run, AssumedLaunch):
        arguments = tuple(dataclasses.replace(item, origin="") for item in run.arguments)
        return encode(dataclasses.replace(run, line=None, notes=(), arguments=arguments))
    workload = run.workload
    case = dataclasses.replace(run.arguments, line=None, weight=1.0)
    files = [
        _stamp(Path(item.values.file))
        for item in case.arguments
        if isinstance(item, TensorArgument) and item.values.file is not None
    ]
    told = (workload.entry, case, workload.setup, workload.call, workload.gradients)
    return [encode(list(told)), files]


def _stamp(file: Path) -> str:
    try:
        status = file.stat()
    except OSError:
        return f"{file} missing"
    return f"{file} {status.st_size} {status.st_mtime_ns}"


def imported_files(path: Path, text: str, root: Path) -> tuple[tuple[str, str], ...]:
    """Project files that a module imports, directly or not, with hashes of their content.

    The project is what lies below the module's import root or the workspace. Imports are followed
    wherever they stand in a file.
    """
    base, name = import_root(path)
    folders = tuple(dict.fromkeys((base, root)))
    package = name.rpartition(".")[0] if path.stem != "__init__" else name
    found: dict[Path, str] = {}
    own = [".".join(package.split(".")[: i + 1]) for i in range(len(package.split(".")))]
    pending = [*_files(folders, own), *_imports(text, package, folders)]
    while pending and len(found) < _MOST_FILES:
        file = pending.pop(0)
        if file in found or file == path:
            continue
        digest, imports = _read(file, folders, _mtime(file))
        found[file] = digest
        pending.extend(imports)
    return tuple((str(file), digest) for file, digest in sorted(found.items()))


@functools.lru_cache(2048)
def _read(file: Path, folders: tuple[Path, ...], _mtime: int) -> tuple[str, tuple[Path, ...]]:
    try:
        data = file.read_bytes()
    except OSError:
        return "unreadable", ()
    _, name = import_root(file)
    package = name if file.stem == "__init__" else name.rpartition(".")[0]
    imports = _imports(data.decode(errors="replace"), package, folders)
    return hashlib.sha256(data).hexdigest()[:16], tuple(imports)


def _mtime(file: Path) -> int:
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return 0


def _imports(text: str, package: str, folders: tuple[Path, ...]) -> list[Path]:
    names: list[str] = []
    for match in _IMPORT.finditer(text):
        if match["modules"] is not None:
            names += [item.split()[0] for item in match["modules"].split(",") if item.split()]
            continue
        base = _absolute(match["base"], package)
        items = match["names"].strip("()").split(",")
        names += [base, *(f"{base}.{item.split()[0]}" for item in items if item.split())]
    return _files(folders, [name for item in names for name in _prefixes(item)])


def _absolute(base: str, package: str) -> str:
    dots = len(base) - len(base.lstrip("."))
    if dots == 0:
        return base
    parts = package.split(".")
    kept = parts[: len(parts) - (dots - 1)]
    return ".".join([*kept, base[dots:]]).strip(".")


def _prefixes(name: str) -> list[str]:
    """``a.b.c`` runs ``a`` and ``a.b`` too."""
    parts = name.split(".")
    return [".".join(parts[: i + 1]) for i in range(len(parts))]


def _files(folders: tuple[Path, ...], names: list[str]) -> list[Path]:
    found: list[Path] = []
    for name in dict.fromkeys(names):
        if not name or not all(part.isidentifier() for part in name.split(".")):
            continue
        for folder in folders:
            stem = folder.joinpath(*name.split("."))
            files = (stem.with_suffix(".py"), stem / "__init__.py")
            found.extend(file for file in files if file.is_file())
    return found
