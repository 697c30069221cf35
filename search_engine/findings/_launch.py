"""Where a launch stands in the text, what it passes, and which launch a trace is of."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from search_engine.domain.access import LaunchTrace
from search_engine.domain.code import LaunchCode
from search_engine.domain.finding import Related
from search_engine.domain.kernel import Entry, Launch, LaunchArgument, Span
from search_engine.domain.target import Target
from search_engine.domain.workload import TensorArgument
from search_engine.findings._base import Subject
from search_engine.findings._source import called_name, function_of, syntax_tree


def traced_launches(subject: Subject) -> Iterator[tuple[LaunchTrace, LaunchCode | None]]:
    """Each trace of the kernel that sampled something, with the code of the same launch."""
    for trace in subject.traces:
        if trace.sampled > 0 and trace.programs > 0:
            yield trace, code_of(subject, trace)


def code_of(subject: Subject, trace: LaunchTrace) -> LaunchCode | None:
    """The compiled launch that a trace is of; None if that is not certain."""
    made = [launch for launch in subject.launches if not launch.assumed]
    same = [launch for launch in made if launch.line == trace.line]
    exact = [launch for launch in same if launch.facts.grid == trace.grid]
    found = exact or same or made
    return found[0] if exact or len(found) == 1 else None


def launch_at(subject: Subject, line: int | None) -> Launch | None:
    """The launch of the kernel whose call covers a line; the only one where no line is known."""
    own = [item for item in subject.module.launches if item.kernel == subject.unit.kernel.name]
    if line is None:
        return own[0] if len(own) == 1 else None
    return next((item for item in own if item.span.line <= line <= item.span.end_line), None)


def grid_span(subject: Subject, launch: Launch | None) -> Span:
    """The grid as the launch writes it; the kernel's name where there is no launch."""
    if launch is None:
        return subject.unit.kernel.name_span
    data, grid = subject.module.text.encode(), launch.grid.encode()
    start = data.find(grid, launch.span.start + len(launch.callee.encode()))
    if not launch.span.start <= start < launch.arguments_span.start:
        return subject.line_span(launch.span.line)
    end = start + len(grid)
    return Span(start, end, subject.line_of(start), subject.line_of(end))


def related_grid(subject: Subject, launch: Launch | None, message: str) -> tuple[Related, ...]:
    """The launch's grid as a related place."""
    if launch is None:
        return ()
    span = grid_span(subject, launch)
    return (Related(span.line, span.start, span.end, message),)


def related_blocks(subject: Subject, launch: Launch | None) -> tuple[Related, ...]:
    """The arguments of a launch that size a block: constants that ``tl.arange`` takes."""
    if launch is None:
        return ()
    sizes = block_parameters(subject)
    return tuple(
        Related(item.span.line, item.span.start, item.span.end, f"{name} sizes the block")
        for name, item in passed(subject, launch).items()
        if name in sizes
    )


def block_parameters(subject: Subject) -> frozenset[str]:
    """Constants of the kernel that stand inside a ``tl.arange``."""
    node = function_of(subject, subject.unit.kernel)
    constants = {item.name for item in subject.unit.kernel.parameters if item.constexpr}
    found: set[str] = set()
    for call in ast.walk(node) if node is not None else ():
        if called_name(call) == "arange":
            found |= {part.id for part in ast.walk(call) if isinstance(part, ast.Name)}
    return frozenset(found & constants)


def passed(subject: Subject, launch: Launch) -> dict[str, LaunchArgument]:
    """What a launch passes, by the kernel's parameter; empty if ``*args`` hides it."""
    if launch.opaque:
        return {}
    names = [item.name for item in subject.unit.kernel.parameters]
    positional = [item for item in launch.arguments if item.name is None]
    bound = dict(zip(names, positional, strict=False))
    bound |= {item.name: item for item in launch.arguments if item.name in names and item.name}
    return bound


def passed_tensor(
    subject: Subject, launch: Launch | None, parameter: str | None
) -> TensorArgument | None:
    """The case's tensor that a launch passes for a parameter, if it passes it as it is."""
    if launch is None or parameter is None or subject.case is None:
        return None
    given = passed(subject, launch).get(parameter)
    text = given.text.strip() if given is not None else parameter.removesuffix("_ptr")
    for argument in subject.case.arguments:
        if isinstance(argument, TensorArgument) and argument.name == text:
            return argument
    return None


def entry_at(subject: Subject, launch: Launch) -> Entry | None:
    """The host function that a launch stands in."""
    found = [item for item in subject.module.entries if item.body.contains(launch.span)]
    return min(found, key=lambda item: item.body.end - item.body.start, default=None)


def entry_node(subject: Subject, entry: Entry) -> ast.FunctionDef | None:
    """The definition of an entry."""
    tree = syntax_tree(subject.module.text)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.FunctionDef) and node.name == entry.name:
            first = min((item.lineno for item in node.decorator_list), default=node.lineno)
            if entry.span.line == first - 1:
                return node
    return None


def processors(target: Target) -> str:
    """``132 SMs``, ``304 CUs``."""
    return f"{target.processors} {'CUs' if target.vendor == 'amd' else 'SMs'}"
