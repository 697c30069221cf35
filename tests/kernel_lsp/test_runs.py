"""The progress line: short, honest, most important first."""

import time

from kernel_lsp.runs import LINE_WIDTH, Run, RunRequest
from search_engine.domain.event import Progress, StateChanged
from search_engine.domain.run import RunState
from search_engine.domain.verdict import Speedup


def run(budget=120.0):
    request = RunRequest("file:///k.py", "/k.py", "k", "h", "", "/", "normal", budget, "auto", {})
    made = Run("r1", request)
    made.started = time.monotonic()
    made.observe(StateChanged(RunState.SEARCHING, "searching", 0.0))
    return made


def test_before_and_after_the_first_gain():
    made = run()
    made.observe(Progress(5, 0, None, 1.0, 120.0))
    assert made.line().startswith("no gain yet · 5 tried")
    made.observe(Progress(7, 1, Speedup(1.38, 1.3, 1.4), 2.0, 120.0))
    assert made.line().startswith("best 1.38x · 7 tried, 1 rejected · ")


def test_lines_fit_a_status_bar():
    made = run(budget=100000.0)
    made.observe(Progress(10**9, 10**8, Speedup(123456.789, 1.0, 2.0), 1.0, 1.0))
    assert len(made.line()) <= LINE_WIDTH
    suffix = "(for the version at start)"
    made.observe(Progress(3, 0, Speedup(1.2, 1.1, 1.3), 1.0, 1.0))
    assert made.line(suffix).endswith(suffix) and len(made.line(suffix)) <= LINE_WIDTH


def test_the_percentage_is_time_over_budget_and_never_done_before_the_end():
    made = run(budget=10.0)
    made.started = time.monotonic() - 5.0
    assert made.percentage == 50
    made.started = time.monotonic() - 500.0
    assert made.percentage == 99
