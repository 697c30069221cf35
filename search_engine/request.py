"""What a run is asked to do, and what must be true before anything is executed."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from search_engine.domain.kernel import Module, Unit
from search_engine.domain.run import Budget, Effort
from search_engine.domain.target import Target
from search_engine.domain.workload import Workload, WorkloadProblem
from search_engine.frontends.registry import frontend_for
from search_engine.frontends.unit import find_unit
from search_engine.frontends.workload import load_recorded, parse_workloads, workload_refusal
from search_engine.rules.registry import rule_named
from search_engine.search.presets import BudgetError, make_budget
from search_engine.targets.registry import target_named

WORKLOAD_FOLDER = Path(".kernel-lsp") / "workloads"


class RequestError(Exception):
    """The request cannot be served as it stands; the message names the thing and the remedy."""


@dataclass(frozen=True, slots=True)
class RunRequest:
    """One search. ``text`` is the buffer's text, which may not be saved."""

    path: Path
    text: str
    kernel: str | None
    root: Path
    python: str | None = None
    cwd: Path | None = None
    env: dict[str, str] = field(default_factory=dict[str, str])
    effort: Effort = Effort.NORMAL
    limits: dict[str, float] = field(default_factory=dict[str, float])
    target: str | None = None
    archive: Path | None = None
    seed: int = 0
    rules: tuple[str, ...] = ()
    """Names of the only rewrite rules that are tried; empty means all."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request that can be run."""

    request: RunRequest
    module: Module
    unit: Unit
    workload: Workload
    budget: Budget
    target: Target | None
    """None: whatever the device is, else the default."""


def request_from_json(data: dict[str, Any]) -> RunRequest:
    """Read the request of the search host. Raises RequestError for what does not fit."""
    limits = cast("dict[str, float | None]", data.get("budget") or {})
    try:
        return RunRequest(
            path=Path(data["path"]),
            text=data["text"],
            kernel=data.get("kernel"),
            root=Path(data["root"]),
            python=data.get("python"),
            cwd=Path(data["cwd"]) if data.get("cwd") else None,
            env=dict(data.get("env") or {}),
            effort=Effort(data.get("effort") or "normal"),
            limits={name: float(amount) for name, amount in limits.items() if amount is not None},
            target=data.get("target"),
            archive=Path(data["archive"]) if data.get("archive") else None,
            seed=int(data.get("seed") or 0),
            rules=tuple(str(name) for name in data.get("rules") or ()),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise RequestError(f"the request is not valid: {error!r}") from error


def prepare(request: RunRequest) -> Prepared:
    """Check a request without executing anything. Raises RequestError with the remedy."""
    try:
        budget = make_budget(request.effort, request.limits)
        target = None if request.target is None else target_named(request.target)
        for name in request.rules:
            rule_named(name)
    except (BudgetError, LookupError) as error:
        raise RequestError(str(error)) from error
    module = read_module(request.path, request.text)
    if module.problems:
        problem = module.problems[0]
        line = problem.span.line + 1
        raise RequestError(f"{request.path}:{line}: the file does not parse: {problem.message}")
    workloads, problems = all_workloads(module, request.root)
    unit = _choose_unit(module, request, workloads)
    _refuse_mistakes(module, unit, problems, request.path)
    workload = _choose_workload(unit, workloads, problems, request.path)
    refusal = workload_refusal(module, unit, workload)
    if refusal is not None:
        raise RequestError(f"{unit.kernel.qualified_name}: {refusal}")
    return Prepared(request, module, unit, workload, budget, target)


def read_module(path: Path, text: str) -> Module:
    """Parse with the front end of the file's suffix. Raises RequestError if there is none."""
    parse = frontend_for(str(path))
    if parse is None:
        raise RequestError(f"{path}: kernels are found in .py files; this file is not one")
    return parse(text, str(path))


def all_workloads(
    module: Module, root: Path
) -> tuple[tuple[Workload, ...], tuple[WorkloadProblem, ...]]:
    """Declared workloads of a file, then the recorded ones of its entries."""
    declared, problems = parse_workloads(module)
    entries = {entry.qualified_name for entry in module.entries}
    stem = Path(module.path).stem
    recorded: list[Workload] = []
    folder = root / WORKLOAD_FOLDER
    if folder.is_dir():
        loaded, more = load_recorded(folder)
        problems = (*problems, *more)
        recorded = [w for w in loaded if w.entry in entries and _belongs(w, stem, folder)]
    return (*declared, *recorded), problems


def _belongs(workload: Workload, stem: str, folder: Path) -> bool:
    """Recorded files are named MODULE.ENTRY.json; the module's last name must be this file's."""
    names = (path.stem for path in folder.glob(f"*{workload.entry}.json"))
    return any(name.removesuffix(f".{workload.entry}").split(".")[-1] == stem for name in names)


def _choose_unit(module: Module, request: RunRequest, workloads: tuple[Workload, ...]) -> Unit:
    names = ", ".join(unit.kernel.qualified_name for unit in module.units) or "none"
    if request.kernel is not None:
        unit = find_unit(module, request.kernel)
        if unit is None:
            raise RequestError(
                f"{request.path}: no kernel named {request.kernel}; the file has {names}"
            )
        return unit
    if not module.units:
        raise RequestError(f"{request.path}: no Triton kernel that stores its result was found")
    entries = {workload.entry for workload in workloads}
    able = [u for u in module.units if u.entry and u.entry.qualified_name in entries]
    first = {unit.entry.qualified_name: unit for unit in reversed(able) if unit.entry}
    if len(module.units) == 1:
        return module.units[0]
    if len(first) == 1:
        return next(iter(first.values()))
    raise RequestError(
        f"{request.path}: several kernels; name one as {request.path}::NAME ({names})"
    )


def _refuse_mistakes(
    module: Module, unit: Unit, problems: tuple[WorkloadProblem, ...], path: Path
) -> None:
    """A mistake in the unit's own declaration stops the run: what it meant to say is unknown."""
    if unit.entry is None:
        return
    for problem in problems:
        below = [e.span.line for e in module.entries if e.span.line >= problem.line]
        if below and min(below) == unit.entry.span.line:
            raise RequestError(f"{path}:{problem.line + 1}: {problem.message}")


def _choose_workload(
    unit: Unit, workloads: tuple[Workload, ...], problems: tuple[WorkloadProblem, ...], path: Path
) -> Workload:
    name = unit.kernel.qualified_name
    if unit.entry is None:
        raise RequestError(
            f"{name}: no function in this file launches it; a rewrite may change the launch, so "
            "optimise it in the file that has both"
        )
    found = [w for w in workloads if w.entry == unit.entry.qualified_name and w.cases]
    if found:
        return found[0]
    if problems:
        problem = problems[0]
        raise RequestError(f"{path}:{problem.line + 1}: {problem.message}")
    raise RequestError(
        f"{name}: no workload, so there is nothing to run it with. Write one above "
        f"{unit.entry.name}, for example `# kernel-lsp: workload x=f32[4096,4096]`, or record one "
        "with `kernel-lsp record -- python YOUR_SCRIPT.py`"
    )
