"""Import the protocol's types in half the time.

``lsprotocol.types`` holds some 570 attrs classes. For each of them attrs writes the source of its
methods and compiles it, at every start: about half of the time that an editor waits for
``initialize``. The compiled code depends on nothing but that source, the name that attrs gives it
and the version of Python, so it is kept in the user's cache and looked up by the exact source.
A cache that is missing, damaged or made by other versions costs time and changes nothing.
"""

from __future__ import annotations

import builtins
import contextlib
import marshal
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path
from types import CodeType
from typing import Any, cast

_MOST_BYTES = 32 * 2**20

Codes = dict[tuple[str, str, str], CodeType]
"""Code objects by source, name and mode."""


def import_protocol(folder: Path) -> None:
    """Import ``lsprotocol.types`` with the code objects kept in ``folder``."""
    with _kept_codes(folder):
        import lsprotocol.types  # noqa: F401  # pyright: ignore[reportUnusedImport]


@contextlib.contextmanager
def _kept_codes(folder: Path) -> Generator[None]:
    """While this is open, attrs finds in the cache what it compiled at an earlier start."""
    import attr._make

    path = folder / f"protocol-{sys.implementation.cache_tag}.marshal"
    codes = _read(path)
    known = len(codes)

    def cached(source: str, name: str, mode: str) -> CodeType:
        key = (source, name, mode)
        if key not in codes:
            codes[key] = builtins.compile(source, name, mode)
        return codes[key]

    # A name in the module hides the builtin of that name, for attrs alone.
    module: Any = attr._make
    module.compile = cached
    try:
        yield
    finally:
        del module.compile
    if len(codes) > known:
        _write(path, codes)


def _read(path: Path) -> Codes:
    try:
        found: Any = marshal.loads(path.read_bytes())
    except (OSError, ValueError, EOFError, TypeError):
        return {}
    return cast("Codes", found) if isinstance(found, dict) else {}


def _write(path: Path, codes: Codes) -> None:
    """Whole or not at all: two servers may start at once."""
    data = marshal.dumps(codes)
    if len(data) > _MOST_BYTES:
        return
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(data)
        Path(file.name).replace(path)
