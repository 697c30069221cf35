"""Workloads of a module: declared in comments above an entry, or recorded in ``.kernel-lsp``.

One line a case; a line that ends in a backslash goes on in the next comment line::

    # kernel-lsp: workload x=bf16[M:8192,N:4096] w=bf16[N]{normal*0.1+1} eps=1e-6 weight=0.5
    # kernel-lsp: reference torch.nn.functional.rms_norm(x, w.shape, w, eps)
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path

from search_engine.domain.codec import decode
from search_engine.domain.kernel import Entry, Module, OperationKind, Unit
from search_engine.domain.workload import (
    Argument,
    TensorArgument,
    Workload,
    WorkloadProblem,
)
from search_engine.frontends.declaration_block import Owner, read_block
from search_engine.frontends.declaration_lines import (
    Declaration,
    DeclarationError,
    declarations,
)
from search_engine.frontends.declaration_writer import completions, declare
from search_engine.frontends.triton_pieces import multiline_strings

__all__ = ["completions", "declare", "load_recorded", "parse_workloads", "workload_refusal"]

_MISPLACED = (
    "no function that launches a kernel follows: put the declaration directly above such a "
    "function, above its decorators"
)


def parse_workloads(module: Module) -> tuple[tuple[Workload, ...], tuple[WorkloadProblem, ...]]:
    """Declared workloads in file order, and what is wrong with the declarations.

    A line with a mistake is left out; the lines around it count. An entry all of whose ``workload``
    lines are wrong has a workload without cases.
    """
    if "kernel-lsp:" not in module.text:
        return (), ()
    data = module.text.encode(errors="surrogatepass")
    listed = tuple(declarations(data, multiline_strings(data)))
    lines = data.split(b"\n")
    workloads: list[Workload] = []
    problems: list[WorkloadProblem] = []
    used: set[int] = set()
    for entry in module.entries:
        block = _block_above(entry.span.line, lines, listed)
        used.update(declaration.first_line for declaration in block)
        if block:
            workload, found = read_block(_owner(entry, module), block)
            workloads.append(workload)
            problems.extend(found)
    for declaration in listed:
        if declaration.first_line not in used:
            error = DeclarationError(0, len(declaration.full), _MISPLACED, "KL802")
            problems.append(declaration.problem(error))
    return tuple(workloads), tuple(sorted(problems, key=lambda problem: problem.start))


def load_recorded(folder: Path) -> tuple[tuple[Workload, ...], tuple[WorkloadProblem, ...]]:
    """Workloads stored as ``*.json`` in a folder, by file name; unreadable files are problems.

    Their value files are named relative to ``folder``; what is returned has absolute paths, which
    mean the same to a worker whatever folder it imports the user's module from.
    """
    workloads: list[Workload] = []
    problems: list[WorkloadProblem] = []
    for file in sorted(folder.glob("*.json")):
        try:
            workloads.append(_with_files(decode(Workload, json.loads(file.read_text())), folder))
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            reason = " ".join(str(error).split())[:200] or type(error).__name__
            message = f"{file.name} is not a recorded workload: {reason}; record it again"
            problems.append(WorkloadProblem(0, 0, 0, "KL801", message))
    return tuple(workloads), tuple(problems)


def workload_refusal(module: Module, unit: Unit, workload: Workload | None) -> str | None:
    """Why ``unit`` cannot be run with ``workload``, naming the remedy; None if it can be."""
    if unit.entry is None:
        return (
            "no function in this file launches it; a rewrite may change the launch, so optimise "
            "it in the file that has both"
        )
    return next(_refusals(module, unit, unit.entry, workload), None)


def _refusals(module: Module, unit: Unit, entry: Entry, workload: Workload | None) -> Iterator[str]:
    name = entry.name
    if workload is None or not workload.cases:
        yield (
            f"no case to run it with: write one above {name}, for example "
            "`# kernel-lsp: workload x=f32[4096,4096]`"
        )
        return
    if workload.entry != entry.qualified_name:
        yield f"the workload belongs to {workload.entry}; declare one above {name}"
    if entry.method and workload.call is None:
        yield (
            f"{name} is a method: say how to call it, for example "
            f"`# kernel-lsp: call {_example_call(entry)}`"
        )
    if _in_autograd(entry) and name == "backward" and not workload.gradients:
        yield (
            "backward runs only through autograd: name the inputs to differentiate, for example "
            "`# kernel-lsp: grad x`, beside the `call`"
        )
    if any(_draws(kernel) for kernel in (unit.kernel, *unit.helpers, *unit.siblings)) and not (
        workload.deterministic
    ):
        yield (
            "it draws random numbers, so outputs cannot be compared with a reference; if the same "
            "seed must give the same bits, declare `# kernel-lsp: deterministic`"
        )
    yield from _launch_refusals(module, unit, entry)


def _launch_refusals(module: Module, unit: Unit, entry: Entry) -> Iterator[str]:
    """A rewrite may change what the grid means, so every launch must be in the unit."""
    parts = (unit.kernel, *unit.helpers, *unit.siblings)
    names = {part.name for part in parts}
    for launch in module.launches:
        if launch.kernel in names and launch.entry != entry.qualified_name:
            where = launch.entry or "the module's top level"
            yield (
                f"{launch.kernel} is also launched in {where} (line {launch.span.line + 1}), and a "
                f"rewrite may change the grid; launch it from {entry.name} alone, or give {where} "
                "its own copy of the kernel"
            )
            return


def _example_call(entry: Entry) -> str:
    owner = entry.qualified_name.rpartition(".")[0] or entry.name
    inputs = ", ".join(p.name for p in entry.parameters if p.name not in ("self", "cls", "ctx"))
    if _in_autograd(entry):
        return f"{owner}.apply({inputs if entry.name == 'forward' else 'x'})"
    return f"{owner}().{entry.name}({inputs})"


def _in_autograd(entry: Entry) -> bool:
    """Methods of ``torch.autograd.Function`` take a context first."""
    first = entry.parameters[0].name if entry.parameters else ""
    return entry.method and entry.name in ("forward", "backward") and first == "ctx"


def _draws(kernel: object) -> bool:
    operations = getattr(kernel, "operations", ())
    return any(operation.kind is OperationKind.RANDOM for operation in operations)


def _block_above(
    line: int, lines: list[bytes], listed: tuple[Declaration, ...]
) -> list[Declaration]:
    """Declarations in the unbroken run of comment lines above ``line``."""
    first = line
    while first > 0 and lines[first - 1].lstrip().startswith((b"#", b"//")):
        first -= 1
    return [item for item in listed if first <= item.first_line and item.last_line < line]


def _owner(entry: Entry, module: Module) -> Owner:
    return Owner(entry.name, entry.qualified_name, entry.parameters, entry.method, module.text)


def _with_files(workload: Workload, folder: Path) -> Workload:
    """The workload with absolute paths of its value files. Raises ValueError if one is missing."""
    return dataclasses.replace(
        workload,
        cases=tuple(
            dataclasses.replace(
                case, arguments=tuple(_with_file(item, folder) for item in case.arguments)
            )
            for case in workload.cases
        ),
    )


def _with_file(argument: Argument, folder: Path) -> Argument:
    if not isinstance(argument, TensorArgument) or argument.values.file is None:
        return argument
    file = folder.resolve() / argument.values.file
    if not file.is_file():
        raise ValueError(f"the values of {argument.name} are missing: {argument.values.file}")
    values = dataclasses.replace(argument.values, file=str(file))
    return dataclasses.replace(argument, values=values)
