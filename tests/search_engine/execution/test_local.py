"""Jobs that misbehave end alone, and leave neither processes nor a broken executor behind."""

import asyncio
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import psutil
import pytest

import search_engine
from search_engine.domain.job import (
    CompileJob,
    Completed,
    Crashed,
    Expired,
    HangJob,
    Lane,
    ProbeJob,
    ProbeReply,
    Refusal,
    RefusalKind,
    Source,
)
from search_engine.domain.workload import Case, Workload, WorkloadSource


def processes_marked(mark: str) -> list[psutil.Process]:
    """Processes whose environment holds the mark: everything that one executor started."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.status() != psutil.STATUS_ZOMBIE and mark in str(process.environ()):
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


async def survived(executor, behaviour: str) -> bool:
    result = await executor.run(HangJob(behaviour, 600), Lane.DEVICE, 20)
    return isinstance(result, Completed) and "survived" in result.reply.message


async def show(executor, what: str, lane: Lane) -> str:
    result = await executor.run(HangJob(f"show {what}", 0), lane, 20)
    assert isinstance(result, Completed)
    return result.reply.message


async def test_a_job_that_hangs_expires_and_the_next_one_gets_a_new_worker(make_executor):
    executor = make_executor()
    for behaviour in ("sleep", "spin"):
        result = await executor.run(HangJob(behaviour, 600), Lane.DEVICE, 0.3)
        assert isinstance(result, Expired)
        assert result.deadline_seconds == 0.3
    assert await survived(executor, "print")


async def test_a_job_that_ends_the_process_is_a_crash_with_what_it_printed(make_executor):
    executor = make_executor()
    left = await executor.run(HangJob("exit", 0), Lane.DEVICE, 20)
    assert isinstance(left, Crashed)
    assert "exit status 7" in left.detail
    assert "about to leave" in left.detail
    died = await executor.run(HangJob("abort", 0), Lane.DEVICE, 20)
    assert isinstance(died, Crashed)
    assert "SIGSEGV" in died.detail


async def test_a_version_that_calls_sys_exit_is_refused_not_a_crash(make_executor):
    result = await make_executor().run(HangJob("sys.exit", 0), Lane.DEVICE, 20)
    assert isinstance(result, Completed)
    assert result.reply.kind is RefusalKind.RUNTIME


async def test_output_neither_blocks_a_worker_nor_passes_for_a_reply(make_executor):
    executor = make_executor()
    assert await survived(executor, "flood")  # 16 MiB: far above what a pipe holds
    assert await survived(executor, "print")  # a forged reply on standard output
    result = await executor.run(ProbeJob(), Lane.DEVICE, 20)
    assert isinstance(result, Completed)
    assert isinstance(result.reply, ProbeReply)


async def test_exhausting_memory_is_refused_under_a_limit(make_executor):
    executor = make_executor(memory_bytes=512 * 1024**2)
    result = await executor.run(HangJob("exhaust memory", 0), Lane.COMPILE, 30)
    assert isinstance(result, Completed)
    assert "ran out of memory" in result.reply.message


async def test_close_ends_children_and_daemons_of_a_job(make_executor, tmp_path):
    executor = make_executor()
    assert await survived(executor, "leave child")
    assert await survived(executor, "leave daemon")
    mark = str(tmp_path / "scratch")
    assert len(processes_marked(mark)) >= 4  # supervisor, worker, child, daemon
    await executor.close()
    assert processes_marked(mark) == []


async def test_a_cancelled_job_leaves_no_process(make_executor, tmp_path):
    executor = make_executor()
    task = asyncio.create_task(executor.run(HangJob("spin", 600), Lane.COMPILE, 600))
    mark = str(tmp_path / "scratch")
    while not processes_marked(mark):
        await asyncio.sleep(0.02)
    await asyncio.sleep(0.2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert processes_marked(mark) == []
    assert await survived(executor, "print")


async def test_a_fresh_device_job_gets_a_process_of_its_own(make_executor):
    """State that a candidate leaves behind must not meet the final check."""
    executor = make_executor()
    fresh = {await show(executor, "process", Lane.FRESH_DEVICE) for _ in range(3)}
    kept = {await show(executor, "process", Lane.DEVICE) for _ in range(3)}
    assert len(fresh) == 3
    assert len(kept) == 1


async def test_an_interpreter_without_torch_is_named_with_the_setting(make_executor, tmp_path):
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    executor = make_executor(str(bare / "bin" / "python"), imports=("torch", "triton"))
    probed = await executor.run(ProbeJob(), Lane.COMPILE, 20)
    assert isinstance(probed.reply, ProbeReply)
    assert [problem.split("`")[1] for problem in probed.reply.problems] == ["torch", "triton"]
    assert all("kernelLsp.worker.python" in problem for problem in probed.reply.problems)
    job = load_job(tmp_path / "workspace", "import torch\n")
    refused = (await executor.run(job, Lane.COMPILE, 20)).reply
    assert isinstance(refused, Refusal)
    assert refused.kind is RefusalKind.ENVIRONMENT
    assert "torch" in refused.message
    assert "kernelLsp.worker.python" in refused.message


async def test_an_interpreter_that_does_not_exist_is_named_with_the_setting(make_executor):
    result = await make_executor("/nowhere/python").run(ProbeJob(), Lane.COMPILE, 20)
    assert isinstance(result.reply, Refusal)
    assert result.reply.kind is RefusalKind.ENVIRONMENT
    assert "/nowhere/python" in result.reply.message
    assert "kernelLsp.worker.python" in result.reply.message


async def test_secrets_stay_out_of_workers(make_executor, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "hunter2")
    monkeypatch.setenv("HARMLESS", "visible")
    seen = await show(make_executor(env={"CHOSEN": "by the user"}), "environment", Lane.DEVICE)
    assert "hunter2" not in seen
    assert "visible" in seen
    assert "by the user" in seen


async def test_only_the_interpreter_lane_interprets(make_executor, monkeypatch):
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    executor = make_executor()
    assert "TRITON_INTERPRET" not in await show(executor, "environment", Lane.DEVICE)
    assert "TRITON_INTERPRET" in await show(executor, "environment", Lane.INTERPRET)


async def test_compile_and_device_workers_share_one_compile_cache(make_executor):
    executor = make_executor()
    lanes = (Lane.COMPILE, Lane.DEVICE, Lane.FRESH_DEVICE)
    seen = [await show(executor, "environment", lane) for lane in lanes]
    caches = {text.partition("('TRITON_CACHE_DIR', ")[2].partition(")")[0] for text in seen}
    assert len(caches) == 1
    assert "scratch" in caches.pop()


async def test_workers_of_different_targets_share_the_limit(make_executor, tmp_path, workspace):
    executor = make_executor(compile_workers=1)
    for target in ("sm_80", "sm_90"):
        await executor.run(load_job(workspace, "raise ValueError\n", target), Lane.COMPILE, 20)
    assert len(processes_marked(str(tmp_path / "scratch"))) == 2  # one worker, its supervisor


def test_workers_die_with_a_server_that_is_killed(tmp_path: Path):
    """Nothing runs after the editor has killed the server, not even what left its session."""
    (tmp_path / "workspace").mkdir()
    script = tmp_path / "server.py"
    script.write_text(
        SERVER.format(root=str(Path(search_engine.__file__).parents[1]), tmp=tmp_path)
    )
    server = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    assert server.stdout.readline() == "busy\n"
    mark = str(tmp_path / "scratch")
    deadline = time.monotonic() + 10
    while len(processes_marked(mark)) < 5 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(processes_marked(mark)) >= 5  # two supervisors, two workers, a daemon
    server.kill()
    server.wait()
    deadline = time.monotonic() + 2
    while processes_marked(mark) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert processes_marked(mark) == []


SERVER = textwrap.dedent("""
    import asyncio, sys
    sys.path.insert(0, {root!r})
    from pathlib import Path
    from search_engine.domain.job import HangJob, Lane
    from search_engine.execution.local import LocalExecutor

    async def main():
        tmp = Path({str(tmp)!r})
        executor = LocalExecutor(sys.executable, tmp / "workspace", scratch=tmp / "scratch",
                                 cache_folder=tmp / "cache", imports=())
        await executor.run(HangJob("leave daemon", 600), Lane.DEVICE, 20)
        print("busy", flush=True)
        await executor.run(HangJob("spin", 600), Lane.COMPILE, 600)

    asyncio.run(main())
""").replace("{str(tmp)!r}", '"{tmp}"')


def load_job(root: Path, text: str, target: str = "sm_90") -> CompileJob:
    """A job that only loads the text: compiling starts by importing what the text imports."""
    source = Source("id", str(root), str(root / "kernels.py"), "kernels", text, "entry")
    workload = Workload("entry", WorkloadSource.DECLARED, (Case(()),))
    return CompileJob(source, workload, 0, target)


async def test_close_ends_workers_that_are_still_starting(make_executor, tmp_path):
    executor = make_executor(imports=("torch", "triton"))
    job = asyncio.create_task(executor.run(HangJob("print", 0), Lane.COMPILE, 20))
    await executor.prepare(Lane.FRESH_DEVICE)
    while len(processes_marked(str(tmp_path / "scratch"))) < 4:
        await asyncio.sleep(0.02)
    await executor.close()
    assert processes_marked(str(tmp_path / "scratch")) == []
    result = await asyncio.wait_for(job, 5)
    assert "closed" in result.reply.message


async def test_each_device_worker_is_drawn_once_from_the_spare(make_executor):
    executor = make_executor()
    await executor.prepare(Lane.FRESH_DEVICE)
    warming = asyncio.create_task(executor.prepare(Lane.DEVICE))
    fresh = await show(executor, "process", Lane.FRESH_DEVICE)
    await warming
    assert fresh != await show(executor, "process", Lane.DEVICE)
    assert fresh != await show(executor, "process", Lane.FRESH_DEVICE)
