"""Rungs that run nothing: policy, duplicates, certain losers."""

from __future__ import annotations

import dataclasses

import pytest

from search_engine.domain.facts import CompileFacts, LaunchFacts
from search_engine.domain.verdict import CompileFailed, Rejected
from search_engine.rungs._base import Failed, Passed, Pruned
from search_engine.rungs.estimate import Estimate
from search_engine.rungs.parse import Parse

from .fakes import TEXT, Machine, candidate, task


def facts(binary: str, **changes: object) -> CompileFacts:
    launch = LaunchFacts("k", (1024, 1, 1), 4, 3, (), 32, 0, 0, binary, 0, 100, 16)
    return CompileFacts("sm_90", (dataclasses.replace(launch, **changes),), 0.1)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("added", "named"),
    [
        ("import os\n", "os"),
        ("import sys as s\n", "sys"),
        ("from subprocess import run\n", "subprocess"),
        ("x = eval('1')\n", "eval()"),
        ("y = entry.__globals__\n", "__globals__"),
        ("open('f')\n", "open()"),
    ],
)
async def test_code_that_a_kernel_has_no_business_with(added: str, named: str) -> None:
    bad = candidate(TEXT + added)
    (outcome,) = await Parse().run(task(), (bad,), 0, Machine(lambda *_: 1.0).submit)
    assert isinstance(outcome, Failed)
    assert isinstance(outcome.verdict, Rejected)
    assert named in outcome.verdict.reason


async def test_what_the_user_uses_a_candidate_may_use() -> None:
    own = candidate("import os\n" + TEXT)
    mine = dataclasses.replace(task(), baseline=own)
    changed = candidate("import os\n" + TEXT.replace("BLOCK=4", "BLOCK=8"))
    (outcome,) = await Parse().run(mine, (changed,), 0, Machine(lambda *_: 1.0).submit)
    assert isinstance(outcome, Passed)


async def test_broken_text_fails() -> None:
    (outcome,) = await Parse().run(
        task(), (candidate("def broken(:\n"),), 0, Machine(lambda *_: 1.0).submit
    )
    assert isinstance(outcome, Failed)
    assert isinstance(outcome.verdict, CompileFailed)


async def test_same_machine_code_is_measured_once() -> None:
    base, first, second, other = (candidate(name=n) for n in ("base", "one", "two", "three"))
    known = {
        base.id: facts("aa"), first.id: facts("bb"), second.id: facts("bb"), other.id: facts("cc"),
    }  # fmt: skip
    mine = dataclasses.replace(task(), facts=known, baseline=base)
    outcomes = await Estimate().run(mine, (first, second, other), 0, Machine(lambda *_: 1.0).submit)
    assert [type(outcome) for outcome in outcomes] == [Passed, Pruned, Passed]


async def test_same_code_on_another_grid_is_another_version() -> None:
    base, tall = candidate(name="base"), candidate(name="tall")
    known = {base.id: facts("aa"), tall.id: facts("aa", grid=(512, 1, 1))}
    mine = dataclasses.replace(task(), facts=known, baseline=base)
    (outcome,) = await Estimate().run(mine, (tall,), 0, Machine(lambda *_: 1.0).submit)
    assert isinstance(outcome, Passed)


async def test_more_shared_memory_than_the_target_has_fails() -> None:
    base, fat = candidate(name="base"), candidate(name="fat")
    known = {base.id: facts("aa"), fat.id: facts("bb", shared_bytes=400_000)}
    mine = dataclasses.replace(task(), facts=known, baseline=base)
    (outcome,) = await Estimate().run(mine, (fat,), 0, Machine(lambda *_: 1.0).submit)
    assert isinstance(outcome, Failed)
    assert isinstance(outcome.verdict, CompileFailed)


async def test_a_few_spills_are_no_veto() -> None:
    base, spilling = candidate(name="base"), candidate(name="spilling")
    known = {base.id: facts("aa"), spilling.id: facts("bb", spill_bytes=128)}
    mine = dataclasses.replace(task(), facts=known, baseline=base)
    (outcome,) = await Estimate().run(mine, (spilling,), 0, Machine(lambda *_: 1.0).submit)
    assert isinstance(outcome, Passed)
