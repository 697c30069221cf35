"""Idle processors are named where a program has work, and only there."""

from __future__ import annotations

from launch_subjects import ROW_KERNEL, code, line_of, load, make_subject, run, trace

from search_engine.findings.grid_too_small import GridTooSmall

LAUNCH = line_of(ROW_KERNEL, "row_kernel[")
LOAD = line_of(ROW_KERNEL, "x = tl.load")
ROW = 65_536


def reading(rows: int, n: int) -> list[str]:
    """Messages for ``rows`` programs that read ``n`` floats each in blocks of 1024."""
    sampled = min(24, rows)
    access = load(
        LOAD, executions=sampled * n // 1024, lanes=sampled * n, tensor_bytes=4 * rows * n
    )
    grid = (rows, 1, 1)
    subject = make_subject(ROW_KERNEL, (trace(LAUNCH, grid, access),), (code(LAUNCH, grid),))
    return [item.message for item in run(GridTooSmall(), subject)]


def test_few_long_programs_leave_processors_idle() -> None:
    assert reading(8, ROW) == ["8 programs for 132 SMs"]


def test_one_program_is_not_plural() -> None:
    assert reading(1, ROW) == ["1 program for 132 SMs"]


def test_a_grid_that_fills_the_device_is_silent() -> None:
    assert reading(132, ROW) == []
    assert reading(4096, ROW) == []


def test_programs_that_are_over_at_once_are_silent() -> None:
    assert reading(8, 1024) == []


def test_it_stands_on_the_grid_and_names_the_loop_and_the_block() -> None:
    grid = (8, 1, 1)
    access = load(LOAD, executions=8 * 64, lanes=8 * ROW, tensor_bytes=32 * ROW)
    subject = make_subject(ROW_KERNEL, (trace(LAUNCH, grid, access),), (code(LAUNCH, grid),))
    (found,) = run(GridTooSmall(), subject)
    assert ROW_KERNEL[found.start : found.end] == "(x.shape[0],)"
    assert found.line == LAUNCH
    assert [item.message for item in found.related] == [
        "64 iterations a program", "BLOCK sizes the block",
    ]  # fmt: skip
    assert found.cost > 0.5
    assert found.facts == {"programs": 8, "processors": 132}


def test_without_a_trace_nothing_is_known_of_the_work() -> None:
    assert run(GridTooSmall(), make_subject(ROW_KERNEL, (), (code(LAUNCH, (8, 1, 1)),))) == []


def test_a_launch_in_another_file_is_told_on_the_kernel() -> None:
    access = load(LOAD, executions=8 * 64, lanes=8 * ROW, tensor_bytes=32 * ROW)
    subject = make_subject(ROW_KERNEL, (trace(4, (8, 1, 1), access),))
    (found,) = run(GridTooSmall(), subject)
    assert ROW_KERNEL[found.start : found.end] == "row_kernel"


def test_a_split_is_named_where_the_rule_offers_one() -> None:
    text = ROW_KERNEL.replace(
        ROW_KERNEL[ROW_KERNEL.index("    for start in range(0, n, BLOCK):\n        cols = start + "
                                    "tl.arange(0, BLOCK)\n        y =") :
                   ROW_KERNEL.index("\n\n# kernel-lsp")],
        "    tl.store(out_ptr + row, total)\n",
    ).replace("empty_like(x)", "empty(x.shape[0], device=x.device)")  # fmt: skip
    access = load(LOAD, executions=8 * 64, lanes=8 * ROW, tensor_bytes=32 * ROW)
    subject = make_subject(text, (trace(line_of(text, "row_kernel["), (8, 1, 1), access),))
    (found,) = run(GridTooSmall(), subject)
    assert found.rule == "split-long-reduction"
