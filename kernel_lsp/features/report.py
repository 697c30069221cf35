"""The text that a user pastes into a bug report: no source text, no values of the environment."""

from __future__ import annotations

import platform
import sys
from typing import TYPE_CHECKING

from kernel_lsp.runs import Run, found

if TYPE_CHECKING:
    from kernel_lsp.session import Session

PACKAGES = ("kernel-lsp", "pygls", "lsprotocol", "tree-sitter", "tree-sitter-python")


def report(session: Session) -> str:
    """The whole report."""
    sections = (
        ("Versions", _versions()),
        ("Workspace", _workspace(session)),
        ("Facts", _facts(session)),
        ("Runs", _runs(session)),
        ("Latencies (ms)", _latencies(session)),
    )
    return "\n\n".join(f"## {title}\n" + "\n".join(lines) for title, lines in sections) + "\n"


def _versions() -> list[str]:
    from importlib import metadata  # slow to import, and only needed here

    lines = [f"python {platform.python_version()} ({sys.executable})", platform.platform()]
    for package in PACKAGES:
        try:
            lines.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            lines.append(f"{package} not installed")
    return lines


def _workspace(session: Session) -> list[str]:
    roots = sorted({document.root for document in session.documents.values()})
    lines = [
        f"documents open: {len(session.documents)}",
        f"offers kept: {len(session.offers)}",
        f"position encoding: {session.encoding.value}",
        f"GPU device file: {'yes' if session.has_device else 'no'}",
        f"memory: {_memory_mib()} MiB",
        f"log: {session.places.log}",
    ]
    for root in roots:
        settings = session.workspace.settings(root)
        trusted = session.trust.trusted(root, settings)
        lines.append(f"root {root}: {'trusted' if trusted else 'not trusted'}")
        lines.append(
            f"  effort {settings.effort}, budget {settings.budget_seconds:g} s, "
            f"device {settings.device}, target {settings.target or 'found'}, "
            f"targets {', '.join(settings.targets) or 'default'}, compile {settings.compile}, "
            f"details {settings.details}"
        )
        lines.append(
            f"  worker python {settings.worker.python or 'found'}, "
            f"environment names: {', '.join(sorted(settings.worker.env)) or 'none'}"
        )
    return lines


def _facts(session: Session) -> list[str]:
    facts = session.facts
    return [
        f"host: {'running' if facts.link.running else 'not running'}, "
        f"started {facts.link.starts} times, {facts.link.failures} deaths in a row",
        f"kept: {len(facts.store)}; files being compiled: {facts.busy}",
        f"a request takes {facts.recent_seconds:.1f} s and waits {facts.pause:.1f} s for a pause",
    ]


def _runs(session: Session) -> list[str]:
    runs = [*session.jobs.ended.values(), *session.jobs.active.values()]
    seen: dict[str, Run] = {run.id: run for run in runs}
    return [
        f"{run.id} {run.request.name}: {run.state.value}, {run.tried} tried, "
        f"{found(run)}; {run.message or run.line()}"
        for run in seen.values()
    ] or ["none"]


def _latencies(session: Session) -> list[str]:
    rows = session.latencies.table()
    return [f"{method}: n {n}, p50 {p50:.2f}, p99 {p99:.2f}" for method, n, p50, p99 in rows]


def _memory_mib() -> str:
    try:
        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123
            pages = int(file.read().split()[1])
    except (OSError, ValueError, IndexError):
        return "unknown"
    return f"{pages * 4096 / 2**20:.0f}"
