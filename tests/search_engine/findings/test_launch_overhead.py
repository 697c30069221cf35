"""Launches in a Python loop are named where launching is what the loop does."""

from __future__ import annotations

import pytest
from launch_subjects import HEADER, code, line_of, load, make_subject, run, trace

from search_engine.domain.finding import Finding
from search_engine.findings.launch_overhead import LaunchOverhead

KERNEL = (
    HEADER
    + """@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, x, mask=offsets < n)


"""
)
LOOP = """def copy(x, out):
    for i in range(x.shape[0]):
        copy_kernel[(8,)](x[i], out[i], x.shape[1], BLOCK=1024)
"""


def untraced(host: str) -> list[Finding]:
    return run(LaunchOverhead(), make_subject(KERNEL + host))


def traced(times: int, programs: int, host: str = LOOP) -> list[Finding]:
    """``times`` launches of ``programs`` blocks of 1024 floats."""
    text = KERNEL + host
    line, grid, sampled = line_of(text, "copy_kernel["), (programs, 1, 1), min(24, programs)
    access = load(
        line_of(text, "x = tl.load"), executions=sampled, lanes=sampled * 1024,
        tensor_bytes=4096 * programs,
    )  # fmt: skip
    traces = (trace(line, grid, access, times=times),)
    return run(LaunchOverhead(), make_subject(text, traces, (code(line, grid),)))


def test_many_small_launches_are_named_at_the_loop() -> None:
    (found,) = traced(512, 8)
    assert found.message == "launched 512 times in one call, each with little to do"
    assert found.line == line_of(KERNEL + LOOP, "for i")
    assert found.related[0].line == line_of(KERNEL + LOOP, "copy_kernel[")
    assert found.cost > 0.7


def test_large_launches_hide_the_launcher() -> None:
    assert traced(512, 100_000) == []


def test_a_few_launches_are_silent() -> None:
    assert traced(4, 8) == []


def test_without_a_trace_the_loop_alone_tells() -> None:
    (found,) = untraced(LOOP)
    assert found.message == "a kernel is launched in each iteration of this Python loop"
    assert found.line == line_of(KERNEL + LOOP, "for i")


def test_a_pointer_that_follows_the_loop_counts() -> None:
    host = LOOP.replace(
        "        copy", "        row = x[i]\n        copy"
    ).replace("(x[i], out[i]", "(row, out")  # fmt: skip
    assert len(untraced(host)) == 1


@pytest.mark.parametrize(
    "host",
    [
        LOOP.replace("range(x.shape[0])", "range(2)"),
        LOOP.replace("range(x.shape[0])", "range(num_chunks)"),
        LOOP.replace("x[i], out[i]", "x[i * 64 : i * 64 + 64], out[i]"),
        LOOP.replace("range(x.shape[0])", "range(0, x.shape[0], 4096)"),
        LOOP.replace("range(x.shape[0])", "(x, out)"),
        LOOP.replace("def copy", "def bench_copy"),
        LOOP.replace("x[i], out[i]", "x, out"),
        LOOP.replace("for i in range(x.shape[0])", "while x.any()"),
        "def copy(x, out):\n    copy_kernel[(8,)](x, out, 8, BLOCK=1024)\n",
    ],
)
def test_loops_that_need_their_launches_are_silent(host: str) -> None:
    assert untraced(host) == []


def test_a_trace_speaks_for_its_own_site() -> None:
    assert traced(2, 8) == []
