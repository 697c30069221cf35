"""Front end for Triton kernels in Python files."""

from __future__ import annotations

import re
from collections.abc import Iterator

from search_engine.domain.kernel import Entry, Kernel, Language, Launch, Module
from search_engine.frontends.triton_pieces import (
    FoundFunction,
    FoundLaunch,
    Names,
    Piece,
    place_piece,
    read_piece,
    split,
)
from search_engine.frontends.unit import build_units

_IMPORT = re.compile(
    r"[ \t\ufeff]*(?:import[ \t]+(?P<modules>[^\n;#]*triton[^\n;#]*)"
    r"|from[ \t]+(?P<base>[\w.]*triton[\w.]*)[ \t]+import[ \t]+"
    r"(?P<names>\([^)]*\)|(?:[^\n#\\]|\\\r?\n)*))"
)
_ITEM = re.compile(r"([\w.]+)(?:\s+as\s+(\w+))?")


def parse_module(text: str, path: str) -> Module:
    """Read every kernel, launch, entry and unit of a Python file. Never raises on broken text.

    Results of unchanged definitions are reused from earlier calls.
    """
    data = text.encode(errors="surrogatepass")
    pieces = _pieces(data, _names(text))
    functions = [function for piece in pieces for function in piece.functions]
    made = {new: old for piece in pieces for new, old in piece.jit_calls}
    kernels = _kernels([function for function in functions if function.device])
    known = {kernel.name for kernel in kernels}
    launches = tuple(
        _resolved(item.launch, made, known)
        for piece in pieces
        for item in piece.launches
        if _is_launch(item, made, known)
    )
    entries = _entries([function for function in functions if not function.device], launches)
    statements = tuple(statement for piece in pieces for statement in piece.statements)
    return Module(
        path=path,
        text=text,
        language=Language.TRITON,
        kernels=kernels,
        entries=entries,
        launches=launches,
        units=build_units(data, kernels, entries, statements),
        problems=tuple(problem for piece in pieces for problem in piece.problems),
    )


def _pieces(data: bytes, names: Names) -> list[Piece]:
    parts: list[tuple[bytes, int, int]] = []
    line = 0
    for start, end in split(data):
        part = data[start:end]
        parts.append((part, start, line))
        line += part.count(b"\n")
    none = frozenset[str]()
    first = [read_piece(part, names, none) for part, _, _ in parts]
    wrapped = {old for piece in first for _, old in piece.jit_calls}
    placed: list[Piece] = []
    for (part, start, row), piece in zip(parts, first, strict=True):
        promoted = frozenset(f.name for f in piece.functions if f.name in wrapped and not f.device)
        placed.append(place_piece(part, names, promoted, start, row))
    return placed


def _names(text: str) -> Names:
    triton = {"triton", "triton.runtime.jit", "gluon", "triton.experimental.gluon"}
    language = {"tl", "triton.language", "gl", "ttgl"}
    jit: set[str] = set()
    tuners: set[str] = set()
    for match in _imports(text):
        if match["modules"] is not None:
            for module, alias in _ITEM.findall(match["modules"]):
                if alias and module == "triton":
                    triton.add(alias)
                    language.add(f"{alias}.language")
                elif alias and module == "triton.language":
                    language.add(alias)
            continue
        for name, alias in _ITEM.findall(match["names"]):
            _add_imported(match["base"], name, alias or name, (triton, language, jit, tuners))
    return Names(frozenset(triton), frozenset(language), frozenset(jit), frozenset(tuners))


def _imports(text: str) -> Iterator[re.Match[str]]:
    """Import statements that name Triton; a search for the word costs a tenth of one by line."""
    at = text.find("import")
    while at >= 0:
        match = _IMPORT.match(text, text.rfind("\n", 0, at) + 1)
        if match is not None:
            yield match
        at = text.find("import", match.end() if match is not None else at + 6)


def _add_imported(base: str, name: str, alias: str, sets: tuple[set[str], ...]) -> None:
    triton, language, jit, tuners = sets
    if name == "jit":
        jit.add(alias)
    elif name in ("autotune", "heuristics"):
        tuners.add(alias)
    elif name == "triton" or (name == "gluon" and base.startswith("triton")):
        triton.add(alias)
        language.add(f"{alias}.language")
    elif (
        name == "tl"
        or base.startswith("triton.language")
        or (name == "language" and base == "triton")
    ):
        language.add(alias)


def _kernels(functions: list[FoundFunction]) -> tuple[Kernel, ...]:
    known = {function.name for function in functions}
    seen: dict[str, int] = {}
    kernels: list[Kernel] = []
    for item in functions:
        ordinal = seen.get(item.qualified_name, 0)
        seen[item.qualified_name] = ordinal + 1
        kernels.append(
            Kernel(
                item.name, item.qualified_name, ordinal, Language.TRITON, item.span,
                item.name_span, item.body, item.parameters, item.decorators, item.loops,
                item.operations, tuple(name for name in item.calls if name in known),
                item.nested, item.conditional,
            )
        )  # fmt: skip
    return tuple(kernels)


def _is_launch(found: FoundLaunch, made: dict[str, str], known: set[str]) -> bool:
    name = found.launch.kernel
    return found.evident or name in known or made.get(name) in known


def _resolved(launch: Launch, made: dict[str, str], known: set[str]) -> Launch:
    """The launch with the name of the function behind ``k = triton.jit(f)``."""
    name = made.get(launch.kernel)
    if name is None or launch.kernel in known or name not in known:
        return launch
    return Launch(
        launch.callee, name, launch.grid, launch.arguments, launch.opaque, launch.in_loop,
        launch.entry, launch.span, launch.arguments_span,
    )  # fmt: skip


def _entries(hosts: list[FoundFunction], launches: tuple[Launch, ...]) -> tuple[Entry, ...]:
    by_entry: dict[str, list[Launch]] = {}
    for launch in launches:
        if launch.entry is not None:
            by_entry.setdefault(launch.entry, []).append(launch)
    entries: list[Entry] = []
    for host in hosts:
        own = [
            launch for launch in by_entry.get(host.qualified_name, ())
            if host.body.contains(launch.span)
        ]  # fmt: skip
        if own and not host.nested:
            entries.append(
                Entry(
                    host.name, host.qualified_name, host.parameters, host.span, host.body,
                    tuple(own), host.method,
                )
            )  # fmt: skip
    return tuple(entries)
