"""The corpora: packages with Triton kernels that are installed from PyPI, and their files."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Package:
    """One distribution. ``parts`` are folders below ``folder`` that count, all if empty."""

    name: str
    version: str
    folder: str
    parts: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    """Parts of paths that are left out: back ends for accelerators of other vendors."""


PACKAGES = (
    Package("conch-triton-kernels", "1.3", "conch"),
    Package("liger-kernel", "0.8.5", "liger_kernel", skipped=("backends/_ascend",)),
    Package("gemlite", "0.6.0.post2", "gemlite"),
    Package("torchao", "0.18.0", "torchao"),
    Package("xformers", "0.0.35", "xformers"),
    Package("flag-gems", "5.0.2", "flag_gems", parts=("ops", "fused")),
    Package("fla-core", "0.6.0", "fla", skipped=("triton_ascend",)),
)


def install(folder: Path, packages: tuple[Package, ...]) -> None:
    """Install the packages alone, without what they depend on, into a folder of their own."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = [f"{package.name}=={package.version}" for package in packages]
    command = [
        sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
        "--no-deps", "--no-compile", "--no-build-isolation", "--upgrade", "--target", str(folder),
    ]  # fmt: skip
    subprocess.run([*command, *wanted], check=True)


def chosen(names: list[str] | None) -> tuple[Package, ...]:
    """The packages of these names, all without any."""
    unknown = set(names or ()) - {package.name for package in PACKAGES}
    if unknown:
        raise SystemExit(f"unknown package {', '.join(sorted(unknown))}")
    return tuple(package for package in PACKAGES if not names or package.name in names)


def files_of(folder: Path, package: Package) -> Iterator[tuple[Path, str]]:
    """Python files of a package that name Triton, with their texts."""
    base = folder / package.folder
    for path in sorted(base.rglob("*.py")):
        relative = path.relative_to(base).as_posix()
        kept = not package.parts or relative.partition("/")[0] in package.parts
        if kept and not any(part in relative for part in package.skipped):
            text = path.read_text(encoding="utf-8", errors="replace")
            if "triton" in text:
                yield path, text
