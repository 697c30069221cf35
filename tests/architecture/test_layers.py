"""Imports go one way. The tables below are the architecture; this test is its enforcement."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# A package or file may import what stands before it in this list, and its own files.
SEARCH_ENGINE = (
    "domain",
    "source",
    "frontends",
    "targets",
    "predict",
    "edits",
    "rules",
    "findings",
    "proposers",
    "rungs",
    "ladder",
    "search",
    "archive",
    "execution",
    "request",
    "facts",
    "interpreters",
    "diagnose",
    "diagnosis",
    "runner",
    "report",
    "service",
    "host",
    "facts_host",
)
WORKER_MAY_IMPORT = ("domain", "execution.wire", "worker")
HEAVY = {"torch", "triton", "ray", "openai", "numpy"}
PROTOCOL = {"pygls", "lsprotocol"}


def imports(path: Path) -> set[str]:
    """Dotted names that a file imports anywhere in it, relative imports resolved."""
    found: set[str] = set()
    package = ".".join(path.relative_to(ROOT).parts[:-1])
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            base = module if node.level == 0 else f"{package}.{module}".rstrip(".")
            found.add(base)
            found.update(f"{base}.{alias.name}" for alias in node.names)
    return found


def files(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def part_of(path: Path) -> str:
    parts = path.relative_to(ROOT / "search_engine").parts
    return parts[0].removesuffix(".py")


@pytest.mark.parametrize(
    "path", [p for p in files("search_engine") if part_of(p) not in ("worker", "__init__")], ids=str
)
def test_search_engine_imports_downwards_only(path: Path) -> None:
    part = part_of(path)
    assert part in SEARCH_ENGINE, f"{part} has no place in the table"
    allowed = {f"search_engine.{name}" for name in SEARCH_ENGINE[: SEARCH_ENGINE.index(part) + 1]}
    for name in imports(path):
        if name.startswith("search_engine."):
            head = ".".join(name.split(".")[:2])
            assert head in allowed, f"{path.relative_to(ROOT)} imports {name}"


@pytest.mark.parametrize("path", files("search_engine/worker"), ids=str)
def test_worker_imports_only_what_is_staged(path: Path) -> None:
    for name in imports(path):
        if name.startswith("search_engine."):
            rest = name.removeprefix("search_engine.")
            ok = any(
                rest == allowed or rest.startswith(f"{allowed}.") for allowed in WORKER_MAY_IMPORT
            )
            assert ok or rest == "execution", f"{path.relative_to(ROOT)} imports {name}"


@pytest.mark.parametrize("path", files("search_engine") + files("kernel_lsp"), ids=str)
def test_heavy_libraries_stay_in_the_worker(path: Path) -> None:
    if "worker" in path.relative_to(ROOT).parts:
        return
    heavy = {name.split(".")[0] for name in imports(path)} & HEAVY
    assert not heavy, f"{path.relative_to(ROOT)} imports {heavy}"


@pytest.mark.parametrize("path", files("search_engine"), ids=str)
def test_search_engine_never_imports_the_server(path: Path) -> None:
    assert not any(name.split(".")[0] == "kernel_lsp" for name in imports(path))


@pytest.mark.parametrize("path", files("kernel_lsp"), ids=str)
def test_server_sees_domain_and_service_only(path: Path) -> None:
    allowed = ("search_engine.domain", "search_engine.service")
    for name in imports(path):
        if name.startswith("search_engine.") and path.name != "docgen.py":
            assert name.startswith(allowed), f"{path.relative_to(ROOT)} imports {name}"


@pytest.mark.parametrize("path", files("kernel_lsp"), ids=str)
def test_protocol_libraries_stay_at_the_edge(path: Path) -> None:
    relative = path.relative_to(ROOT / "kernel_lsp")
    if relative.parts[0] in ("protocol", "handlers", "server.py"):
        return
    assert not {name.split(".")[0] for name in imports(path)} & PROTOCOL


def test_every_plugin_file_is_in_its_registry() -> None:
    for package in ("rules", "findings", "targets", "rungs"):
        registry = (ROOT / "search_engine" / package / "registry.py").read_text()
        for path in (ROOT / "search_engine" / package).glob("[a-z]*.py"):
            if path.stem != "registry":
                assert path.stem in registry, f"{package}/{path.name} is not in the registry"


def test_broad_excepts_stand_in_the_named_places_only() -> None:
    places = {
        path.relative_to(ROOT).as_posix()
        for path in files("search_engine") + files("kernel_lsp")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ExceptHandler) and _broad(node)
    }
    allowed = {
        "kernel_lsp/cli.py",  # CLI main
        "kernel_lsp/protocol/base.py",  # request guard
        "kernel_lsp/analyser.py",  # producer guard of the server
        "search_engine/diagnose.py",  # producer guard of the checks
        "search_engine/proposers/rules.py",  # producer guard of the search
        "search_engine/worker/main.py",  # worker loop
    }
    assert places <= allowed


def _broad(node: ast.ExceptHandler) -> bool:
    """Catches everything and does not hand it on."""
    if isinstance(node.body[-1], ast.Raise) and node.body[-1].exc is None:
        return False
    names = [n.id for n in ast.walk(node.type) if isinstance(n, ast.Name)] if node.type else [""]
    return bool({"", "Exception", "BaseException"} & set(names))
