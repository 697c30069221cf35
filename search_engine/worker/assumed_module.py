"""A module that holds one kernel and what it reads, made without executing the user's module.

Only the definitions that the kernel needs are executed, each on first use: device functions without
their autotuners and wrappers, constants, and the imports that bind them. Names from other files of
the workspace are taken from those files in the same way, so a package whose import fails (a missing
dependency, a device that is asked for) still gives its kernels. A name that cannot be had stays
undefined, and the compiler says so. Functions keep file and lines.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import time
import types
from pathlib import Path
from typing import Any

from search_engine.domain.candidate import python_text
from search_engine.domain.job import Refusal, RefusalKind, Source
from search_engine.worker.assumed_imports import absolute_name, file_of, search_folders
from search_engine.worker.assumed_syntax import (
    bound_names,
    free_names,
    path_to,
    plain_function,
    statement_bodies,
)
from search_engine.worker.attempt import Attempt
from search_engine.worker.loader import LoadError, load, scratch_file

_AS_THEY_ARE = frozenset({"triton", "torch", "numpy", "packaging"})
"""Packages besides the standard library that are imported: that executes nothing of the user's."""

_STAND_INS = {
    "triton": "triton",
    "tl": "triton.language",
    "language": "triton.language",
    "libdevice": "triton.language.extra.libdevice",
    "tl_extra_shim": "triton.language.extra.libdevice",
}
"""What names from modules that are missing usually are; packages re-export Triton under them."""

_DEEPEST = 60
_RETRY_SECONDS = 120.0
"""After it, a package that was missing may have been installed."""

_failed: dict[tuple[str, str, str], tuple[float, str]] = {}
"""The version whose import failed last: when, and why."""


def load_or_extract(source: Source, kernel: str) -> tuple[types.ModuleType, str | None]:
    """The user's module; if its import fails, one made of the kernel alone, and the reason.

    An import that failed is not tried again for a while: it may have taken seconds. Raises
    LoadError if there is no such kernel in the text.
    """
    key = (source.module, source.path, source.text)
    known = _failed.get(key)
    if known is not None and time.monotonic() - known[0] < _RETRY_SECONDS:
        return extract(source, kernel), known[1]
    with Attempt() as attempt:
        return load(source), None
    error = attempt.error
    reason = error.refusal.message if isinstance(error, LoadError) else str(error)
    _failed.clear()  # one file at a time is worked on
    _failed[key] = (time.monotonic(), reason)
    return extract(source, kernel), reason


def extract(source: Source, kernel: str) -> types.ModuleType:
    """A module with the kernel under its qualified name. Raises LoadError if there is none."""
    try:
        tree = ast.parse(python_text(source.text))
    except SyntaxError as error:
        refusal = Refusal(RefusalKind.COMPILE, f"SyntaxError: {error.msg}", (error.lineno or 1) - 1)
        raise LoadError(refusal) from error
    with Attempt():  # packages look it up as an attribute of triton.language
        importlib.import_module("triton.language.extra.libdevice")
    is_package = Path(source.path).name == "__init__.py"
    files = _Files(search_folders(source.path, source.module, source.root))
    reader = _Reader(source.module, is_package, tree, str(scratch_file(source)), files)
    if not reader.define(kernel):
        message = f"`{kernel}` is not defined in module `{source.module}`"
        raise LoadError(Refusal(RefusalKind.COMPILE, message))
    return reader.module


class _Files:
    """Readers of the workspace's files by dotted name."""

    def __init__(self, folders: tuple[Path, ...]) -> None:
        self._folders = folders
        self._readers: dict[str, _Reader | None] = {}
        self.depth = 0

    def reader(self, name: str) -> _Reader | None:
        """The reader of a module if its file lies in the workspace and parses."""
        if name not in self._readers:
            self._readers[name] = self._read(name)
        return self._readers[name]

    def _read(self, name: str) -> _Reader | None:
        file = file_of(name, self._folders) if name else None
        if file is None:
            return None
        try:
            tree = ast.parse(python_text(file.read_text(encoding="utf-8", errors="replace")))
        except (SyntaxError, OSError):
            return None
        return _Reader(name, file.name == "__init__.py", tree, str(file), self)


class _Reader:
    """Defines names of one file in ``module``, from the statements that bind them."""

    def __init__(
        self, name: str, is_package: bool, tree: ast.Module, file: str, files: _Files
    ) -> None:
        self.module = types.ModuleType(name)  # Triton copies whatever is not exactly a module
        self.names: dict[str, Any] = self.module.__dict__
        self.names.update(__getattr__=self._missing, __file__=file, __annotations__={})
        self._name, self._is_package, self._file, self._files = name, is_package, file, files
        self._tree = tree
        self._bindings: dict[str, list[ast.stmt]] = {}
        self._stars: list[ast.ImportFrom] = []
        self._resolving: set[str] = set()
        self._collect(tree.body)

    def define(self, qualified_name: str) -> bool:
        """Define a function, also one inside classes and functions; False if there is none."""
        path = path_to(self._tree.body, qualified_name.split("."))
        if path is None or not isinstance(path[-1], ast.FunctionDef):
            return False
        for scope in path[:-1]:
            if isinstance(scope, ast.FunctionDef):
                self._collect(scope.body)  # what the kernel captures
                self._collect_defaults(scope)
        function = path[-1]
        if not self._define_function(function):
            return False
        self.names[qualified_name] = self.names[function.name]
        return True

    def resolve(self, name: str) -> bool:
        """Define a name of the module; False if no statement gives it a value."""
        if name in self.names:
            return True
        if name in self._resolving or self._files.depth > _DEEPEST:
            return False
        self._resolving.add(name)
        self._files.depth += 1
        found = (
            any(self._execute(node, name) for node in self._bindings.get(name, ()))
            or any(self._from(star, name, name) for star in self._stars)
            or self._submodule(name)
        )
        self._files.depth -= 1
        self._resolving.discard(name)
        return found or name in self.names

    def _missing(self, name: str) -> Any:
        """An attribute of the module that is asked for the first time."""
        if name.startswith("__") or not self.resolve(name):
            raise AttributeError(f"module `{self._name}` has no `{name}` that can be extracted")
        return self.names[name]

    def _collect(self, body: list[ast.stmt]) -> None:
        """Note which statements bind which names; those of the first branch come first."""
        for node in body:
            if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
                self._stars.append(node)
            for name in bound_names(node):
                self._bindings.setdefault(name, []).append(node)
            for inner in statement_bodies(node):
                self._collect(inner)

    def _collect_defaults(self, scope: ast.FunctionDef) -> None:
        positional = scope.args.args[len(scope.args.args) - len(scope.args.defaults) :]
        for argument, default in zip(positional, scope.args.defaults, strict=True):
            node = ast.Assign([ast.Name(argument.arg, ast.Store())], default)
            self._bindings.setdefault(argument.arg, []).append(ast.copy_location(node, default))

    def _execute(self, node: ast.stmt, name: str) -> bool:
        match node:
            case ast.FunctionDef():
                return self._define_function(node)
            case ast.ImportFrom(names=names):
                alias = next(a for a in names if (a.asname or a.name) == name)
                return self._from(node, alias.name, name)
            case ast.Import(names=names):
                alias = next(a for a in names if name in (a.asname, a.name.partition(".")[0]))
                return self._import(alias, name)
            case ast.AnnAssign(annotation=annotation, value=ast.expr() as value):
                self._annotate(name, annotation)
                plain = ast.Assign([ast.Name(name, ast.Store())], value)
                return self._run(ast.copy_location(plain, node), name)
            case _:
                return self._run(node, name)

    def _annotate(self, name: str, annotation: ast.expr) -> None:
        """Annotations count: Triton lets kernels read globals that are annotated constexpr."""
        self._resolve_all(annotation)
        code = compile(ast.fix_missing_locations(ast.Expression(annotation)), self._file, "eval")
        with Attempt():
            self.names["__annotations__"][name] = eval(code, self.names)

    def _run(self, node: ast.stmt, name: str) -> bool:
        """Execute one statement after what it reads; False if it gives the name no value."""
        self._resolve_all(node)
        tree = ast.fix_missing_locations(ast.Module([node], []))
        with Attempt():
            exec(compile(tree, self._file, "exec", dont_inherit=True), self.names)
        return self.names.get(name) is not None  # None is often set before a real value

    def _define_function(self, node: ast.FunctionDef) -> bool:
        """Define a function before the names of its body, which may lead back to it."""
        plain = plain_function(node)
        for part in (*plain.decorator_list, plain.args):
            self._resolve_all(part)
        tree = ast.fix_missing_locations(ast.Module([plain], []))
        with Attempt():
            exec(compile(tree, self._file, "exec", dont_inherit=True), self.names)
        self._resolve_all(plain)
        return node.name in self.names

    def _resolve_all(self, node: ast.AST) -> None:
        for name in free_names(node):
            if name in self._bindings or not hasattr(builtins, name):
                self.resolve(name)

    def _from(self, node: ast.ImportFrom, wanted: str, name: str) -> bool:
        """``from module import wanted as name``."""
        module = absolute_name(self._name, self._is_package, node.level, node.module or "")
        reader = self._workspace_module(module)
        if reader is not None:
            if reader.resolve(wanted):
                self.names[name] = reader.names[wanted]
        else:
            with Attempt():
                real = importlib.import_module(module)
                if not hasattr(real, wanted):
                    importlib.import_module(f"{module}.{wanted}")
                self.names[name] = getattr(real, wanted)
        if name not in self.names and wanted in _STAND_INS:
            with Attempt():
                self.names[name] = importlib.import_module(_STAND_INS[wanted])
        return name in self.names

    def _import(self, alias: ast.alias, name: str) -> bool:
        module = alias.name if alias.asname else alias.name.partition(".")[0]
        reader = self._workspace_module(module)
        if reader is not None:
            self.names[name] = reader.module
            return True
        with Attempt():
            importlib.import_module(alias.name)
            self.names[name] = importlib.import_module(module)
        return name in self.names

    def _workspace_module(self, module: str) -> _Reader | None:
        top = module.partition(".")[0]
        return None if top in _AS_THEY_ARE else self._files.reader(module)

    def _submodule(self, name: str) -> bool:
        inner = self._files.reader(f"{self._name}.{name}") if self._is_package else None
        if inner is not None:
            self.names[name] = inner.module
        return inner is not None
