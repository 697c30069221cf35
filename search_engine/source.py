"""Where a file stands in its project: import root and original dotted module name."""

from __future__ import annotations

from pathlib import Path

from search_engine.domain.job import Source


def import_root(path: Path) -> tuple[Path, str]:
    """``(root, module)``: the folder to import from and the dotted name of ``path`` there.

    The root is the first folder above the file without an ``__init__.py``, so that packages and
    ``src`` layouts keep their relative imports.
    """
    folder = path.parent
    parts = [path.stem] if path.stem != "__init__" else []
    while (folder / "__init__.py").is_file() and folder != folder.parent:
        parts.insert(0, folder.name)
        folder = folder.parent
    return folder, ".".join(parts) or path.stem


def make_source(source_id: str, path: Path, text: str, entry: str) -> Source:
    """The version ``text`` of the file at ``path``."""
    root, module = import_root(path)
    return Source(source_id, str(root), str(path), module, text, entry)
