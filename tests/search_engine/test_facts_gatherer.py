"""Facts are asked for once, kept by content, and never raise for what user code does."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from fake_executor import FakeExecutor, answer, code_of, line_with, text_of

from search_engine.archive.facts_cache import FactsCache, FactsStore, MemoryFacts
from search_engine.archive.facts_key import module_context
from search_engine.domain.job import (
    Completed,
    Crashed,
    Expired,
    InspectJob,
    InspectReply,
    Job,
    JobResult,
    Lane,
    Listing,
    Refusal,
    RefusalKind,
    TraceJob,
    TraceReply,
)
from search_engine.facts import Asked, DroppedError, FactsGatherer, LaunchSource, UnitFacts
from search_engine.frontends.triton import parse_module
from search_engine.frontends.workload import parse_workloads


def asked_of(text: str, target: str = "sm_90") -> Asked:
    module = parse_module(text, "/nowhere/k.py")
    workloads = parse_workloads(module)[0]
    return Asked(module, module_context(module, Path("/nowhere")), workloads, target)


async def gather(
    executor: FakeExecutor, text: str, store: FactsStore | None = None, target: str = "sm_90"
) -> tuple[UnitFacts, ...]:
    asked = asked_of(text, target)
    gatherer = FactsGatherer(
        executor, store if store is not None else MemoryFacts(), "e", asyncio.Semaphore(1)
    )
    return await gatherer.gather(asked, asked.module.units)


def failing(kind: RefusalKind, line: int | None = None, message: str = "no") -> FakeExecutor:
    """Workloads are refused; assumed launches compile."""

    def reply(job: Job) -> JobResult:
        if isinstance(job, InspectJob) and not job.assumed:
            return Completed(Refusal(kind, message, line), 0.1)
        return answer(job)

    return FakeExecutor(reply)


async def test_one_job_of_each_kind_serves_all_kernels_of_an_entry() -> None:
    executor = FakeExecutor()
    found = await gather(executor, text_of("a+b"))
    assert [facts.unit.kernel.name for facts in found] == ["a_kernel", "b_kernel"]
    assert [[c.facts.kernel for c in facts.launches] for facts in found] == [
        ["a_kernel"], ["b_kernel"],
    ]  # fmt: skip
    assert all(facts.traces and facts.source is LaunchSource.WORKLOAD for facts in found)
    assert [(lane, type(job)) for lane, job, _ in executor.jobs] == [
        (Lane.COMPILE, InspectJob), (Lane.INTERPRET, TraceJob),
    ]  # fmt: skip
    assert [seconds for *_, seconds in executor.jobs] == [60.0, 20.0]


async def test_the_heaviest_case_is_compiled() -> None:
    executor = FakeExecutor()
    declared = (
        "# kernel-lsp: workload x=f32[64] weight=0.1\n"
        "# kernel-lsp: workload x=f16[4096]\n"
        "# kernel-lsp: workload x=f32[4096]\n"
        "# kernel-lsp: workload x=f32[8192] weight=0"
    )
    (facts,) = await gather(executor, text_of("a", declaration=declared))
    assert facts.case is not None
    assert facts.case.label == "x=f32[4096]"
    assert {job.case for _, job, _ in executor.jobs if isinstance(job, InspectJob | TraceJob)} == {
        2
    }


async def test_the_second_time_nothing_is_run_and_lines_are_those_of_the_text(
    tmp_path: Path,
) -> None:
    text = text_of("a+b")
    store = FactsCache(tmp_path / "facts.sqlite")
    await gather(FakeExecutor(), text, store)
    moved = "# a new first line\n" + text.replace(
        "    for first in range(0, n, BLOCK):\n",
        "    # why\n\n    for first in range(0, n, BLOCK):\n",
    )
    executor = FakeExecutor()
    found = await gather(executor, moved, FactsCache(tmp_path / "facts.sqlite"))
    assert executor.jobs == []
    for facts, name in zip(found, "ab", strict=True):
        load = line_with(moved, f"def {name}_kernel") + 5
        assert "tl.load" in moved.splitlines()[load]
        assert facts.launches[0].lines[0].line == load
        assert facts.launches[0].loops[0].end_line == load + 1
        assert facts.traces[0].accesses[0].line == load
    assert found[1].launches[0].line == line_with(moved, "    b_kernel[(")


async def test_another_target_is_compiled_but_not_traced_again() -> None:
    store = MemoryFacts()
    await gather(FakeExecutor(), text_of("a"), store)
    executor = FakeExecutor()
    await gather(executor, text_of("a"), store, target="gfx942")
    assert [lane for lane, *_ in executor.jobs] == [Lane.COMPILE]


async def test_an_edit_of_one_kernel_leaves_the_facts_of_another() -> None:
    store = MemoryFacts()
    text = text_of("a", "b")
    asked = asked_of(text)
    gatherer = FactsGatherer(FakeExecutor(), store, "e", asyncio.Semaphore(1))
    for unit in asked.module.units:
        await gatherer.gather(asked, [unit])
    edited = asked_of(text.replace("x * 2", "x * 3", 1))
    executor = FakeExecutor()
    gatherer = FactsGatherer(executor, store, "e", asyncio.Semaphore(1))
    first, second = edited.module.units
    await gatherer.gather(edited, [second])
    assert executor.jobs == []
    await gatherer.gather(edited, [first])
    assert len(executor.jobs) == 2


async def test_without_a_workload_a_launch_is_assumed_and_nothing_traced() -> None:
    executor = FakeExecutor()
    (facts,) = await gather(executor, text_of("a", declaration="# nothing"))
    assert facts.source is LaunchSource.ASSUMED
    assert facts.launches[0].assumed
    assert facts.notes, "what was assumed is said"
    (job,) = executor.inspected()
    assert job.workload is None
    assert [launch.kernel for launch in job.assumed] == ["a_kernel"]
    assert len(executor.jobs) == 1


@pytest.mark.parametrize(
    "kind", [RefusalKind.WORKLOAD, RefusalKind.RUNTIME, RefusalKind.UNSUPPORTED]
)
async def test_a_workload_that_does_not_run_is_replaced_by_an_assumed_launch(
    kind: RefusalKind,
) -> None:
    (facts,) = await gather(failing(kind), text_of("a"))
    assert facts.source is LaunchSource.ASSUMED
    assert facts.launches
    assert facts.refusal == Refusal(kind, "no")


async def test_a_kernel_that_does_not_compile_is_not_assumed_to_do() -> None:
    text = text_of("a")
    executor = failing(RefusalKind.COMPILE, line_with(text, "tl.load"))
    (facts,) = await gather(executor, text)
    assert (facts.launches, facts.source) == ((), LaunchSource.WORKLOAD)
    assert len(executor.inspected()) == 1


async def test_a_sibling_that_does_not_compile_is_no_fault_of_the_kernel() -> None:
    text = text_of("a+b")
    executor = failing(RefusalKind.COMPILE, line_with(text, "def b_kernel") + 3)
    first, second = await gather(executor, text)
    assert (first.source, len(first.launches)) == (LaunchSource.ASSUMED, 1)
    assert (second.source, second.launches) == (LaunchSource.WORKLOAD, ())


async def test_a_kernel_that_the_case_does_not_launch_is_assumed() -> None:
    text = text_of("a+b")

    def reply(job: Job) -> JobResult:
        if isinstance(job, InspectJob) and not job.assumed:
            launches = (code_of("a", text),)
            return Completed(InspectReply(job.target, launches, (), "3.6.0", 0.1), 0.1)
        return answer(job)

    first, second = await gather(FakeExecutor(reply), text)
    assert (first.source, second.source) == (LaunchSource.WORKLOAD, LaunchSource.ASSUMED)


@pytest.mark.parametrize(
    ("result", "sentence"),
    [
        (Crashed("SIGSEGV\nmany\nlines", 1.0), "the worker died while counting accesses: SIGSEGV"),
        (Expired(20.0, 20.0), "counting accesses took more than 20 s"),
        (Completed(Refusal(RefusalKind.UNSUPPORTED, "inline assembly"), 1.0), "inline assembly"),
    ],
)
async def test_a_trace_that_fails_is_a_note(result: JobResult, sentence: str) -> None:
    executor = FakeExecutor(lambda job: result if isinstance(job, TraceJob) else answer(job))
    store = MemoryFacts()
    (facts,) = await gather(executor, text_of("a"), store)
    assert facts.launches
    assert facts.traces == ()
    assert any(sentence in note for note in facts.notes)


@pytest.mark.parametrize("result", [Crashed("", 1.0), Expired(60.0, 60.0)])
async def test_a_compiler_that_fails_is_asked_once_in_a_process_and_again_in_the_next(
    result: JobResult,
) -> None:
    executor = FakeExecutor(lambda job: result)
    asked = asked_of(text_of("a"))
    store = MemoryFacts()
    gatherer = FactsGatherer(executor, store, "e", asyncio.Semaphore(1))
    (facts,) = await gatherer.gather(asked, asked.module.units)
    assert facts.launches == ()
    assert facts.refusal is not None
    count = len(executor.jobs)
    assert count == 2, "an assumed launch would take as long"
    assert (await gatherer.gather(asked, asked.module.units))[0].refusal == facts.refusal
    assert len(executor.jobs) == count
    again = FakeExecutor()
    (facts,) = await gather(again, text_of("a"), store)
    assert facts.launches
    assert again.jobs


async def test_a_missing_module_is_asked_for_again() -> None:
    missing = Completed(Refusal(RefusalKind.ENVIRONMENT, "Python module `triton` is missing"), 0.1)
    executor = FakeExecutor(lambda job: missing)
    asked = asked_of(text_of("a"))
    gatherer = FactsGatherer(executor, MemoryFacts(), "e", asyncio.Semaphore(1))
    (facts,) = await gatherer.gather(asked, asked.module.units)
    assert facts.refusal is not None
    assert facts.refusal.kind is RefusalKind.ENVIRONMENT
    executor.reply = answer
    (facts,) = await gatherer.gather(asked, asked.module.units)
    assert facts.launches


async def test_nothing_is_started_for_what_was_dropped_but_what_is_known_is_told() -> None:
    store, executor = MemoryFacts(), FakeExecutor()
    asked = asked_of(text_of("a"))
    gatherer = FactsGatherer(executor, store, "e", asyncio.Semaphore(1))
    dropped = Asked(asked.module, asked.context, asked.workloads, "sm_90", lambda: True)
    with pytest.raises(DroppedError):
        await gatherer.gather(dropped, asked.module.units)
    assert executor.jobs == []
    await gatherer.gather(asked, asked.module.units)
    (facts,) = await gatherer.gather(dropped, asked.module.units)
    assert facts.launches


async def test_a_listing_is_of_the_workload_or_else_of_an_assumed_launch() -> None:
    for executor in (FakeExecutor(), failing(RefusalKind.RUNTIME)):
        asked = asked_of(text_of("a"))
        gatherer = FactsGatherer(executor, MemoryFacts(), "e", asyncio.Semaphore(1))
        found = await gatherer.listing(asked, asked.module.units[0])
        assert isinstance(found, Listing)
        assert found.text == "MOV\nLDG\n"
        assert all(job.listing for job in executor.inspected())


async def test_a_reply_of_another_kind_is_a_refusal() -> None:
    executor = FakeExecutor(lambda job: Completed(TraceReply(()), 0.1))
    (facts,) = await gather(executor, text_of("a"))
    assert facts.launches == ()
    assert facts.refusal is not None
    assert "TraceReply" in facts.refusal.message
