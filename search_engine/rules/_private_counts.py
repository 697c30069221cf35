"""The text of a counting loop: the edits to the kernel of ``privatise-histogram``."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from search_engine.rules._base import Patch, Subject
from search_engine.rules._index import call_name, program_ids
from search_engine.rules._syntax import argument, assigned_name, body, fresh_name


@dataclass(frozen=True, slots=True)
class CountingLoop:
    """What the loop is made from: names and texts as the kernel writes them.

    ``guard`` limits the flushed bins where there are fewer counters than ``bins``; ``most`` is the
    number of bins above which the original atomic stays, None where the number is fixed.
    """

    tl: str
    atomic: ast.Call
    counters: str
    value: ast.expr
    extent: str
    block: str
    bins: str
    guard: str | None
    most: int | None


def write_loop(patch: Patch, subject: Subject, loop: CountingLoop) -> None:
    """Wrap the kernel's body in a loop over blocks and count in registers."""
    counts = fresh_name(subject, "private_counts")
    tl, statements = loop.tl, body(subject.kernel_node)
    first, last = statements[0], statements[-1]
    zeros = f"{counts} = {tl}.zeros(({loop.bins},), dtype={tl}.int32)"
    start = [zeros] if loop.most is None else [f"if {loop.bins} <= {loop.most}:", f"    {zeros}"]
    begin = _header(patch, subject, loop, start)
    _indent(patch, subject, begin, patch.span(last)[0])
    _count(patch, subject, loop, counts, last)
    end = patch.span(last)[1]
    text = "".join("\n" + " " * first.col_offset + line for line in _flush(subject, loop, counts))
    patch.replace_range(end, end, text)


def _header(patch: Patch, subject: Subject, loop: CountingLoop, start: list[str]) -> int:
    """Write the loop's header; the offset behind which lines belong to its body."""
    statements = body(subject.kernel_node)
    first = statements[0]
    (program,) = program_ids(subject.kernel_node, 0)
    tl, name = loop.tl, assigned_name(first)
    cast = _casts(subject.kernel_node, program, name)
    merged = isinstance(first, ast.Assign) and first.value is program and name and not cast
    variable = name if merged and name else fresh_name(subject, "block")
    blocks = f"{tl}.cdiv({loop.extent}, {loop.block})"
    header = f"for {variable} in range({patch.source(program)}, {blocks}, {tl}.num_programs(0)):"
    indent = "\n" + " " * first.col_offset
    begin, end = patch.span(first)
    if merged:
        patch.replace_range(begin, end, indent.join([*start, header]))
        return end
    patch.replace_range(begin, begin, indent.join([*start, header, "    "]))
    patch.replace(program, f"{tl}.cast({variable}, {tl}.int32)" if cast else variable)
    return begin


def _casts(kernel: ast.FunctionDef, program: ast.Call, name: str | None) -> bool:
    """The program id is cast by its method, which a plain loop variable may lack."""
    for node in ast.walk(kernel):
        if call_name(node) == "to" and isinstance(node, ast.Call):
            owner = node.func.value if isinstance(node.func, ast.Attribute) else None
            if owner is program or (isinstance(owner, ast.Name) and owner.id == name):
                return True
    return False


def _indent(patch: Patch, subject: Subject, begin: int, end: int) -> None:
    """Move the lines that start between two offsets to the right."""
    data = subject.text.encode()
    position = data.find(b"\n", begin)
    while 0 <= position < end:
        line = data[position + 1 : data.find(b"\n", position + 1)]
        if line.strip() and position + 1 < end:
            patch.replace_range(position + 1, position + 1, "    ")
        position = data.find(b"\n", position + 1)


def _count(patch: Patch, subject: Subject, loop: CountingLoop, counts: str, last: ast.stmt) -> None:
    tl, bins = loop.tl, loop.bins
    indent = "\n" + " " * (last.col_offset + 4)
    lines: list[str] = []
    value = patch.source(loop.value)
    if not isinstance(loop.value, ast.Name):
        name = fresh_name(subject, "bin_index")
        lines, value = [f"{name} = {value}"], name
    mask = argument(loop.atomic, 2, "mask")
    inside = f"({value} >= 0) & ({value} < {bins})"
    if mask is not None:
        text = patch.source(mask)
        inside = f"{text if isinstance(mask, ast.Name) else f'({text})'} & {inside}"
    counted = f"{counts} += {tl}.histogram({value}.to({tl}.int32), {bins}, mask={inside})"
    if loop.most is None:
        lines.append(counted)
    else:
        atomic = patch.source(last).replace("\n", "\n        ")
        lines += [f"if {bins} <= {loop.most}:", f"    {counted}", "else:", f"    {atomic}"]
    patch.replace(last, indent.join(lines))


def _flush(subject: Subject, loop: CountingLoop, counts: str) -> list[str]:
    tl, index = loop.tl, fresh_name(subject, "bins")
    mask = f"{counts} > 0"
    if loop.guard is not None:
        mask = f"({counts} > 0) & ({index} < {loop.guard})"
    lines = [
        f"{index} = {tl}.arange(0, {loop.bins})",
        f"{tl}.atomic_add({loop.counters} + {index}, {counts}, mask={mask})",
    ]
    if loop.most is None:
        return lines
    return [f"if {loop.bins} <= {loop.most}:", *(f"    {line}" for line in lines)]
