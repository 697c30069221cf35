"""When the compiler is asked, about what, and what is done with the answers."""

import asyncio
from types import SimpleNamespace

import pytest
from in_process import make_session

from kernel_lsp.facts import service
from kernel_lsp.facts.service import LONGEST_PAUSE, SHORTEST_PAUSE, NoListing


async def opened(session, folder, text, name="k.py"):
    path = folder / name
    session.open(path.as_uri(), str(path), 0, text)
    return await session.analyser.fresh(path.as_uri())


async def facts_of(session, snapshot):
    async with asyncio.timeout(60):
        while not session.facts.known(snapshot, snapshot.units[0]):
            await asyncio.sleep(0.01)
    return session.facts.known(snapshot, snapshot.units[0])


def asked(session):
    return [request for host in session.facts.link.launcher.hosts for request in host.asked]


@pytest.mark.parametrize(
    ("recent", "pause"), [(0.0, SHORTEST_PAUSE), (6.0, 3.0), (90.0, LONGEST_PAUSE)]
)
async def test_the_pause_grows_with_what_compiling_takes(tmp_path, recent, pause):
    session = make_session(tmp_path)
    session.facts.recent_seconds = recent
    assert session.facts.pause == pause
    await session.close()


async def test_a_run_tells_which_gpu_is_here(tmp_path, kernel):
    session = make_session(tmp_path)
    snapshot = await opened(session, tmp_path, kernel)
    assert [facts.target for facts in await facts_of(session, snapshot)] == ["sm_90"]
    request = SimpleNamespace(name="k", uri=snapshot.uri, unit_hash="")
    report = SimpleNamespace(device="A100", target="sm_80", refusal=None)
    session.run_ended(
        SimpleNamespace(
            request=request,
            report=report,
            token="t",
            message="",
            update=dict,
            exit_reason=None,
            outcome=None,
            verified=0,
            id="r1",
        )
    )
    assert session.facts_scope(snapshot).targets == ("sm_80",)
    await session.close()


async def test_targets_of_the_settings_go_before_the_gpu(tmp_path, kernel):
    session = make_session(tmp_path, {"targets": ["gfx942", "sm_80"]})
    snapshot = await opened(session, tmp_path, kernel)
    async with asyncio.timeout(60):
        while len(await facts_of(session, snapshot)) < 2:
            await asyncio.sleep(0.01)
    targets = [facts.target for facts in session.facts.known(snapshot, snapshot.units[0])]
    assert targets == ["gfx942", "sm_80"]
    await session.close()


async def test_the_same_kernel_in_another_file_needs_no_compiler(tmp_path, kernel):
    session = make_session(tmp_path)
    (tmp_path / "setup.py").write_text("")
    first = await opened(session, tmp_path, kernel)
    await facts_of(session, first)
    second = await opened(session, tmp_path, "\n\n" + kernel, "copy.py")
    (facts,) = session.facts.known(second, second.units[0])
    assert all(second.lines[f.line].strip() for f in facts.findings)
    assert {f.path for f in facts.findings} == {second.path}
    await asyncio.sleep(0.3)
    assert len(asked(session)) == 1
    await session.close()


async def test_an_idle_host_ends_and_a_new_one_serves_the_next_need(tmp_path, kernel, monkeypatch):
    monkeypatch.setattr("kernel_lsp.facts.link.IDLE_SECONDS", 0.05)
    monkeypatch.setattr(service, "SHORTEST_PAUSE", 0.0)
    session = make_session(tmp_path)
    await facts_of(session, await opened(session, tmp_path, kernel))
    async with asyncio.timeout(60):
        while session.facts.link.running:
            await asyncio.sleep(0.01)
    other = await opened(session, tmp_path, kernel.replace("2 * x", "3 * x"), "other.py")
    await facts_of(session, other)
    assert session.facts.link.starts == 2 and session.facts.link.failures == 0
    await session.close()


async def test_machine_code_is_not_asked_for_without_trust(tmp_path, kernel):
    session = make_session(tmp_path)
    session.trust.client = False
    snapshot = await opened(session, tmp_path, kernel)
    with pytest.raises(NoListing, match="not trusted"):
        await session.facts.listing(snapshot, "double_kernel", "sm_90", 9)
    assert asked(session) == [] and session.facts.known(snapshot, snapshot.units[0]) == ()
    await session.close()
