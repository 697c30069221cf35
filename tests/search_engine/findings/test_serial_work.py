"""Loops whose latency nothing hides are named at their header."""

from __future__ import annotations

from launch_subjects import ROW_KERNEL, code, line_of, load, make_subject, run, trace

from search_engine.domain.code import PipelinedLoop
from search_engine.domain.finding import Finding
from search_engine.findings.serial_work import SerialWork

LAUNCH = line_of(ROW_KERNEL, "row_kernel[")
HEADER = line_of(ROW_KERNEL, "for start")
LOAD = line_of(ROW_KERNEL, "x = tl.load")


def walking(rows: int, n: int, block: int, loops: tuple[PipelinedLoop, ...] = ()) -> list[Finding]:
    sampled = min(24, rows)
    access = load(
        LOAD, executions=sampled * n // block, lanes=sampled * n, tensor_bytes=4 * rows * n
    )
    grid = (rows, 1, 1)
    traces = (trace(LAUNCH, grid, access),)
    return run(SerialWork(), make_subject(ROW_KERNEL, traces, (code(LAUNCH, grid, loops=loops),)))


def test_a_long_loop_of_small_blocks_is_named_at_its_header() -> None:
    (found,) = walking(64, 16_384, 128)
    assert found.message == "one program walks 16,384 elements in 128 steps"
    assert found.line == HEADER
    assert found.related[0].message == "64 programs for 132 SMs"
    assert found.facts["iterations"] == 128


def test_waiting_adds_up_where_programs_queue() -> None:
    (found,) = walking(16_384, 8192, 128)
    assert found.message == "one program walks 8,192 elements in 64 steps"


def test_blocks_that_keep_the_memory_busy_are_silent() -> None:
    assert walking(16_384, 8192 * 4, 1024) == []


def test_a_few_iterations_are_silent() -> None:
    assert walking(64, 16_384, 2048) == []


def test_prefetched_loads_do_not_wait() -> None:
    assert walking(64, 16_384, 128, (PipelinedLoop(HEADER, HEADER + 3, 2, 2, 4, True),)) == []


def test_loops_limited_by_bytes_are_silent() -> None:
    # 1,000 programs of 16 blocks of 64 KB: the bytes take longer than the waiting.
    assert walking(1000, 16 * 16_384, 16_384) == []
