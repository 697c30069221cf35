"""Let interpreted kernels call device libraries: the interpreter knows the core language only.

Functions of ``triton.language.extra`` get the interpreter's semantic as compiled code gets the
compiler's; those of the portable ``libdevice`` become the CUDA ones, which say their types.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
from types import ModuleType
from typing import Any

from search_engine.worker.trace_speed import Replacement

_EXTRA = "triton.language.extra"
_TYPED = f"{_EXTRA}.cuda.libdevice"
_MODULES = ("cuda.libdevice", "cuda.utils", "cuda.gdc", "cuda", "libdevice")


def replacements() -> list[Replacement]:
    """The functions of the libraries, as interpreted kernels can call them."""
    return [
        (module, name, _bound(function))
        for module, functions in _libraries().items()
        for name, function in functions.items()
    ]


def bind_names(names: dict[str, Any]) -> Names:
    """Bind functions that a kernel's module imported by name; the result undoes it."""
    scope = Names(names)
    for name, value in list(names.items()):
        if callable(value) and str(getattr(value, "__module__", "")).startswith(_EXTRA):
            scope.set(name, _bound(value))
    return scope


class Names:
    """Global names of a module that were replaced."""

    def __init__(self, names: dict[str, Any]) -> None:
        self._names = names
        self._before: dict[str, Any] = {}

    def set(self, name: str, value: Any) -> None:
        """Replace a name."""
        self._before[name] = self._names[name]
        self._names[name] = value

    def restore(self) -> None:
        """Put everything back."""
        self._names.update(self._before)


def _bound(function: Any) -> Any:
    from triton.runtime import interpreter

    chosen = function
    if function.__module__ == f"{_EXTRA}.libdevice":
        typed = [named for module, named in _libraries().items() if module.__name__ == _TYPED]
        chosen = typed[0].get(function.__name__, function) if typed else function

    def call(*arguments: Any, **named: Any) -> Any:
        return chosen(*arguments, **{**named, "_semantic": interpreter.interpreter_semantic})

    return call


@functools.cache
def _libraries() -> dict[ModuleType, dict[str, Any]]:
    """Each library's own functions by name; read before anything is replaced."""
    found: dict[ModuleType, dict[str, Any]] = {}
    for name in _MODULES:
        with contextlib.suppress(ImportError):
            module = importlib.import_module(f"{_EXTRA}.{name}")
            found[module] = {
                member: value
                for member, value in vars(module).items()
                if callable(value) and not member.startswith("_")
            }
    return found
