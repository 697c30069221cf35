"""One request: static findings at once, then each kernel for each target, from few jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from fake_executor import FakeExecutor, answer, line_with, text_of

from search_engine.archive.facts_cache import MemoryFacts
from search_engine.diagnosis import Diagnosis
from search_engine.domain.facts_message import (
    FactsRequest,
    ListingRequest,
    StaticFindings,
    UnitFindings,
)
from search_engine.domain.job import Completed, Crashed, InspectJob, Job, JobResult, Refusal
from search_engine.domain.job import RefusalKind as Kind
from search_engine.domain.ports import Executor
from search_engine.interpreters import Interpreters
from search_engine.request import RequestError

ROOT = Path("/nowhere")


class Bench:
    """A diagnosis on fake executors; ``made`` are the executors, in order."""

    def __init__(self, reply: Callable[[Job], JobResult] = answer) -> None:
        self.made: list[FakeExecutor] = []

        def make(python: str, cwd: Path, env: Mapping[str, str]) -> Executor:
            del python, cwd, env
            self.made.append(FakeExecutor(reply))
            return self.made[-1]

        self.service = Diagnosis(Interpreters(MemoryFacts(), make))

    @property
    def jobs(self) -> list[Job]:
        return [job for executor in self.made for _, job, _ in executor.jobs]

    async def ask(
        self, text: str, dropped: Callable[[], bool] = lambda: False, **changes: object
    ) -> list[StaticFindings | UnitFindings]:
        request = FactsRequest(
            **{
                "id": "1", "path": "/nowhere/k.py", "root": "/nowhere", "text": text,
                "python": "/nowhere/python", "cwd": "/", **changes,
            }
        )  # fmt: skip
        return [item async for item in self.service.answers(request, dropped)]


def units(answers: list[StaticFindings | UnitFindings]) -> list[UnitFindings]:
    return [item for item in answers if isinstance(item, UnitFindings)]


async def test_static_findings_come_first_and_then_every_kernel_and_target() -> None:
    bench = Bench()
    answers = await bench.ask(text_of("a+b", "c"), targets=("sm_90", "gfx942"))
    assert isinstance(answers[0], StaticFindings)
    assert [(item.kernel, item.target) for item in units(answers)] == [
        ("a_kernel", "sm_90"), ("b_kernel", "sm_90"), ("c_kernel", "sm_90"),
        ("a_kernel", "gfx942"), ("b_kernel", "gfx942"), ("c_kernel", "gfx942"),
    ]  # fmt: skip
    assert {item.id for item in answers} == {"1"}
    assert len(bench.jobs) == 2 * 2 + 2, "a job an entry and target; traces for one target only"
    first = units(answers)[0]
    assert first.summary is not None
    assert (first.summary.kernel, first.summary.registers) == ("a_kernel", 32)
    assert len(first.unit_hash) == 16


async def test_the_same_file_again_runs_nothing() -> None:
    bench = Bench()
    first = await bench.ask(text_of("a", "b"))
    count = len(bench.jobs)
    assert await bench.ask(text_of("a", "b")) == first
    assert len(bench.jobs) == count
    assert len(bench.made) == 1


async def test_only_the_kernels_that_were_asked_for() -> None:
    bench = Bench()
    answers = await bench.ask(text_of("a", "b"), kernels=("b_kernel",))
    assert [item.kernel for item in units(answers)] == ["b_kernel"]
    assert len(bench.jobs) == 2


@pytest.mark.parametrize(
    "changes", [{"compile": False}, {"text": text_of("a") + "def (\n"}, {"text": "x = 1\n"}]
)
async def test_where_nothing_can_be_compiled_no_interpreter_is_looked_for(
    changes: dict[str, object],
) -> None:
    bench = Bench()
    answers = await bench.ask(**{"text": text_of("a"), **changes})
    assert [type(item) for item in answers] == [StaticFindings]
    assert bench.made == []


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"targets": ("sm_12",)}, "unknown target 'sm_12'; known targets are sm_80"),
        ({"path": "/nowhere/k.cu"}, "kernels are found in .py files"),
    ],
)
async def test_a_request_that_cannot_be_served_says_why(
    changes: dict[str, object], sentence: str
) -> None:
    with pytest.raises(RequestError, match=sentence):
        await Bench().ask(**{"text": text_of("a"), **changes})


async def test_no_triton_is_said_once_for_the_file_and_asked_once() -> None:
    missing = Refusal(Kind.ENVIRONMENT, "Python module `triton` is missing in python")
    bench = Bench(lambda job: Completed(missing, 0.1))
    answers = await bench.ask(text_of("a", "b", "c", declaration="#"))
    assert len(bench.jobs) == 1
    assert [item.refusal for item in units(answers)] == [missing] * 3
    assert all(item.findings == () for item in units(answers))
    last = answers[-1]
    assert isinstance(last, StaticFindings)
    assert [item.code for item in last.findings].count("KL002") == 1
    assert "`triton` is missing" in last.findings[-1].message
    assert [item.code for item in last.findings].count("KL803") == 3


async def test_a_target_that_triton_does_not_know_is_said_once() -> None:
    unknown = Refusal(Kind.UNSUPPORTED, "Triton 3.4.0 does not know sm_100")

    def reply(job: Job) -> JobResult:
        if isinstance(job, InspectJob) and job.target == "sm_100":
            return Completed(unknown, 0.1)
        return answer(job)

    bench = Bench(reply)
    answers = await bench.ask(text_of("a", "b"), targets=("sm_100", "sm_90"))
    said = [f for item in units(answers) for f in item.findings if f.code == "KL002"]
    assert [(item.target, item.message) for item in said] == [
        ("sm_100", "no data: Triton 3.4.0 does not know sm_100")
    ]
    assert [item.target for item in units(answers) if item.summary is not None] == ["sm_90"] * 2


async def test_a_worker_that_dies_costs_one_kernel() -> None:
    def reply(job: Job) -> JobResult:
        if isinstance(job, InspectJob) and (job.source.entry, job.assumed) == ("a", ()):
            return Crashed("SIGSEGV", 1.0)
        return answer(job)

    answers = await Bench(reply).ask(text_of("a", "b"))
    first, second = sorted(units(answers), key=lambda item: item.kernel)
    assert first.refusal is not None
    assert "SIGSEGV" in first.refusal.message
    assert [item.code for item in first.findings] == ["KL002"]
    assert (second.refusal, second.summary is None) == (None, False)


async def test_nothing_is_started_after_it_was_dropped() -> None:
    bench = Bench()
    answers = await bench.ask(text_of("a", "b", "c"), lambda: len(bench.jobs) >= 2)
    assert [item.kernel for item in units(answers)] == ["a_kernel"]
    assert len(bench.jobs) == 2


async def test_ignored_findings_are_not_answered() -> None:
    refusal = Refusal(Kind.COMPILE, "no", line_with(text_of("a"), "tl.load"))
    bench = Bench(lambda job: Completed(refusal, 0.1))
    assert units(await bench.ask(text_of("a")))[0].findings
    assert not units(await bench.ask(text_of("a"), ignore=("compile-error",)))[0].findings
    commented = text_of("a").replace("    for first", "    # kernel-lsp: ignore\n    for first")
    assert units(await bench.ask(commented))[0].findings, "the comment is on the loop's line"
    on_line = text_of("a").replace(
        "mask=offsets < n)\n", "mask=offsets < n)  # kernel-lsp: ignore\n", 1
    )
    assert not units(await bench.ask(on_line))[0].findings


async def test_interpreters_keep_their_workers_until_others_are_asked_for() -> None:
    bench = Bench()
    for folder in ("/", "/tmp", "/usr", "/"):
        await bench.ask(text_of("a"), cwd=folder)
    assert len(bench.made) == 3
    await bench.ask(text_of("a"), cwd="/var")
    assert [executor.closed for executor in bench.made] == [False, True, False, False]
    await bench.service.close()
    assert all(executor.closed for executor in bench.made)


async def test_idle_workers_are_given_up_and_started_again() -> None:
    bench = Bench()
    await bench.ask(text_of("a"))
    await bench.service.retire(600)
    assert not bench.made[0].closed
    await bench.service.retire(0)
    assert bench.made[0].closed
    answers = await bench.ask(text_of("a", "b"))
    assert len(bench.made) == 2
    assert all(item.summary for item in units(answers))


async def test_requests_that_come_together_share_workers() -> None:
    bench = Bench()
    await asyncio.gather(*(bench.ask(text_of(name)) for name in "abcd"))
    assert len(bench.made) == 1


async def test_a_listing_points_at_the_line() -> None:
    bench, text = Bench(), text_of("a")
    file = FactsRequest("1", "/nowhere/k.py", "/nowhere", text, cwd="/", python="/nowhere/python")
    found = await bench.service.listing(
        ListingRequest("2", file, "a_kernel", "sm_90", line_with(text, "tl.load"))
    )
    assert (found.text, found.row, found.problem) == ("MOV\nLDG\n", 1, None)
    with pytest.raises(RequestError, match="no kernel named z"):
        await bench.service.listing(ListingRequest("2", file, "z", "sm_90"))
