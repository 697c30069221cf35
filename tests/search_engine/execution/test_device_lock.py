"""Two runs never hold one card; a dead holder holds nothing."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

import search_engine
from search_engine.execution.device_lock import hold


async def test_the_second_run_waits_and_is_told_once(tmp_path: Path):
    order: list[str] = []
    told: list[str] = []

    async def run(name: str) -> None:
        async with hold("GPU-1", told.append, tmp_path):
            order.append(f"{name} in")
            await asyncio.sleep(0.5)
            order.append(f"{name} out")

    await asyncio.gather(run("a"), run("b"))
    assert order in (["a in", "a out", "b in", "b out"], ["b in", "b out", "a in", "a out"])
    assert len(told) == 1
    assert told[0].startswith("process ")


async def test_another_card_is_free(tmp_path: Path):
    def waiting(_holder: str) -> None:
        pytest.fail("waited")

    async with hold("GPU-1", waiting, tmp_path), hold("GPU-2", waiting, tmp_path):
        pass


async def test_waiting_can_be_cancelled_and_frees_nothing(tmp_path: Path):
    async def wait() -> None:
        async with hold("GPU-1", lambda _: None, tmp_path):
            pytest.fail("the lock was held by another run")

    async with hold("GPU-1", lambda _: None, tmp_path):
        task = asyncio.create_task(wait())
        await asyncio.sleep(0.3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_a_killed_process_lets_go(tmp_path: Path):
    root = str(Path(search_engine.__file__).parents[1])
    code = (
        f"import sys, asyncio, pathlib; sys.path.insert(0, {root!r})\n"
        "from search_engine.execution.device_lock import hold\n"
        "async def main():\n"
        f"    async with hold('GPU-1', print, pathlib.Path({str(tmp_path)!r})):\n"
        "        print('held', flush=True); await asyncio.sleep(600)\n"
        "asyncio.run(main())\n"
    )
    holder = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    told: list[str] = []

    async def kill_when_told() -> None:
        while not told:
            await asyncio.sleep(0.01)
        holder.kill()
        holder.wait()

    killer = asyncio.create_task(kill_when_told())
    async with hold("GPU-1", told.append, tmp_path):
        assert told == [f"process {holder.pid}"]
    await killer
