"""Loops that load from global memory, and whether the compiler prefetches their loads."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence

from search_engine.domain.code import PipelinedLoop
from search_engine.worker.code_places import UserText
from search_engine.worker.ir_dots import DOTS
from search_engine.worker.ir_text import IrOperation
from search_engine.worker.ir_types import shaped_types

_LOADS = re.compile(
    r"(?:tt|amdg|amdgpu)\.(?:load|buffer_load|masked_load)|tt\.(?:experimental_)?descriptor_(?:load|gather)"
)
"""Loads into registers."""

_COPIES = re.compile(
    r"ttg\.async_copy_global_to_local|ttng\.async_tma_(?:copy_global_to_local|gather)"
    r"|(?:amdg|amdgpu)\.(?:buffer_load_to_local|async_tdm_copy_global_to_local)"
)
"""Loads into a buffer in shared memory, which go on while the program does."""

_PASSED_ON = (
    "ttg.async_commit_group", "ttg.convert_layout", "tt.bitcast", "tt.reshape",
    "amdg.in_thread_transpose", "amdgpu.in_thread_transpose",
)  # fmt: skip
"""Operations that hand on what an iteration keeps."""

_STAGES = re.compile(r"tt\.num_stages = (\d+)")


def pipelined_loops(
    lowered: Sequence[IrOperation],
    original: Iterable[IrOperation],
    stages: int,
    text: str,
    user: UserText,
) -> tuple[PipelinedLoop, ...]:
    """Loops with loads in their own body, in the order of the code.

    ``stages`` is the launch's; a loop's own (``tl.range(num_stages=)``), which stands in TTIR
    only, goes before it. ``text`` is the version's, for the loop's last line.
    """
    own = {item.chain: int(match[1]) for item in original
           if item.is_loop and (match := _STAGES.search(item.text))}  # fmt: skip
    ends = _loop_lines(text)
    loops: list[PipelinedLoop] = []
    for item in lowered:
        if not item.is_loop:
            continue
        body = list(item.inside(nested_loops=False))
        loads = [part for part in body if _LOADS.fullmatch(part.name)]
        copies = [part for part in body if _COPIES.fullmatch(part.name)]
        if loads or copies:
            ready = sum(_is_ahead(load, body) for load in loads)
            ahead = sum(_is_ahead(copy, body) or _is_buffered(copy, lowered) for copy in copies)
            first, last = _span(ends, user.line(item.chain))
            loops.append(
                PipelinedLoop(
                    line=first,
                    end_line=last,
                    loads=len(loads) + len(copies),
                    prefetched=ready + ahead,
                    stages=own.get(item.chain, stages),
                    has_dot=any(part.name in DOTS for part in body),
                )
            )
    return tuple(dict.fromkeys(loops))  # a helper's loop stands once for each call


def _is_buffered(copy: IrOperation, lowered: Sequence[IrOperation]) -> bool:
    """True if a copy goes into one of several buffers, so that another can be in use."""
    for operand in copy.operands:
        made = next((item for item in lowered if operand in item.results), None)
        if made is None or made.name not in ("ttg.memdesc_index", "ttg.memdesc_subview"):
            continue
        ring = shaped_types(made.types)[0]
        if ring.element != "i64" and ring.shape[0] > 1:  # barriers are i64
            return True
    return False


def _is_ahead(load: IrOperation, body: Sequence[IrOperation]) -> bool:
    """True if an iteration only keeps what it loads, or a copy's token, for the next one to use."""
    return bool(load.results) and _is_kept(load.results[0], body, set())


def _is_kept(value: str, body: Sequence[IrOperation], seen: set[str]) -> bool:
    if value in seen:
        return True
    seen.add(value)
    uses = [item for item in body if value in item.operands]
    return bool(uses) and all(_keeps(item, body, seen) for item in uses)


def _keeps(item: IrOperation, body: Sequence[IrOperation], seen: set[str]) -> bool:
    if item.name == "scf.yield":
        return True
    if item.name == "ttg.local_store":
        buffer = item.operands[-1]
        return not any(
            other.name == "ttg.local_load" and buffer in other.operands for other in body
        )
    return item.name in _PASSED_ON and all(_is_kept(result, body, seen) for result in item.results)


def _loop_lines(text: str) -> list[tuple[int, int, int]]:
    """First line of each loop's header, of its body, and the loop's last, all 0-based."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return []
    return list(_loops_of(tree))


def _loops_of(tree: ast.AST) -> Iterator[tuple[int, int, int]]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.For, ast.While)):
            last = node.end_lineno or node.lineno
            yield node.lineno - 1, node.body[0].lineno - 1, last - 1


def _span(loops: list[tuple[int, int, int]], line: int | None) -> tuple[int | None, int | None]:
    """The loop whose header holds the line: its first and last line.

    The compiler names the place of the iterator, which may stand below the ``for``.
    """
    if line is None:
        return None, None
    holding = [item for item in loops if item[0] <= line <= max(item[0], item[1] - 1)]
    if not holding:
        return line, None
    first, _, last = max(holding)
    return first, last
