"""Where the module that an import statement names lies on disk, without importing anything."""

from __future__ import annotations

from pathlib import Path


def search_folders(path: str, module: str, root: str) -> tuple[Path, ...]:
    """Folders that hold the top packages: the one of the file's own package, then the workspace."""
    file = Path(path).resolve()
    depth = module.count(".") + (1 if file.name == "__init__.py" else 0)
    own = [file.parents[depth]] if depth < len(file.parents) else []
    return tuple(dict.fromkeys([*own, Path(root).resolve()]))


def absolute_name(module: str, is_package: bool, level: int, name: str) -> str:
    """The dotted name that a relative import means; '' if it leaves the top package."""
    if level == 0:
        return name
    parts = module.split(".")
    kept = len(parts) - level + (1 if is_package else 0)
    if kept < 1:
        return ""
    return ".".join([*parts[:kept], *([name] if name else [])])


def file_of(name: str, folders: tuple[Path, ...]) -> Path | None:
    """The file of a module or package, or None."""
    for folder in folders:
        base = folder.joinpath(*name.split("."))
        for file in (base / "__init__.py", base.with_name(base.name + ".py")):
            if file.is_file():
                return file
    return None
