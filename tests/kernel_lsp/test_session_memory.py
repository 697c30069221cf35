"""A long day of typing: what is kept per edit is bounded."""

import asyncio
import gc
import tracemalloc
from types import SimpleNamespace

import fake_facts_host

from kernel_lsp.documents import Change
from kernel_lsp.facts import service, store
from kernel_lsp.latency import Latencies
from kernel_lsp.places import Places
from kernel_lsp.positions import Position, Range
from kernel_lsp.session import Session
from kernel_lsp.settings import Settings
from kernel_lsp.trust import TrustStore
from kernel_lsp.workspace import Workspace
from search_engine.domain.facts_message import CancelRequest, Done, answer_from_line, to_line
from search_engine.frontends.syntax_digest import syntax_digest
from search_engine.frontends.triton import parse_module
from search_engine.frontends.triton_pieces import place_piece, read_piece

WARM, EDITS = 40, 120
MOST_BYTES_PER_EDIT = 512


class Editor:
    """A client that keeps nothing."""

    draws_runs = False
    published = 0

    def publish(self, snapshot, diagnostics):
        self.published += any(d.code == "KL001" for d in diagnostics)

    def __getattr__(self, name):
        async def configuration(roots):
            return None

        return configuration if name == "configuration" else lambda *_: None


class Host:
    """A facts host in this process; everything crosses the wire's form."""

    last_words = ""

    def __init__(self):
        self.queue = asyncio.Queue()

    def ask(self, request):
        if isinstance(request, CancelRequest):
            self.queue.put_nowait(Done(request.id, cancelled=True))
            return
        module = parse_module(request.text, request.path)
        for unit in module.units:
            self.queue.put_nowait(fake_facts_host.figures(request, unit, module, "sm_90"))
        self.queue.put_nowait(Done(request.id))

    async def answers(self):
        while True:
            yield answer_from_line(to_line(await self.queue.get()))

    def kill(self):
        pass

    async def close(self):
        pass


class Launcher:
    async def launch(self):
        return Host()


async def test_edits_leave_nothing_behind(tmp_path, kernel, monkeypatch):
    monkeypatch.setattr(service, "SHORTEST_PAUSE", 0.0)
    monkeypatch.setattr("kernel_lsp.session.TOGETHER_SECONDS", 0.0)
    monkeypatch.setattr(store, "KEPT", 20)
    editor = Editor()
    places = Places(tmp_path, tmp_path, tmp_path)
    trust = TrustStore(tmp_path / "trust.json", client=True)
    session = Session(
        client=editor, places=places, workspace=Workspace(tmp_path / "none"), trust=trust,
        launcher=SimpleNamespace(), facts_launcher=Launcher(), latencies=Latencies(),
    )  # fmt: skip
    assert session.workspace.settings(str(tmp_path)) == Settings()
    uri, path = (tmp_path / "k.py").as_uri(), str(tmp_path / "k.py")
    session.open(uri, path, 0, kernel.replace("2 * x", "1000 * x"))

    async def type_edits(first, last):
        line = kernel.split("\n").index("    tl.store(y_ptr + offsets, 2 * x, mask=mask)")
        place = Range(Position(line, 30), Position(line, 34))
        for version in range(first, last):
            session.change(uri, version, (Change(place, str(1000 + version)),))
            snapshot = await session.analyser.fresh(uri)
            shown = editor.published
            while not session.facts.known(snapshot, snapshot.units[0]) or editor.published == shown:
                await asyncio.sleep(0.001)
        await asyncio.sleep(0.1)
        for cached in (syntax_digest, read_piece, place_piece):
            cached.cache_clear()  # bounded, and far from full here
        gc.collect()

    await type_edits(1, WARM)
    tracemalloc.start()
    try:
        await type_edits(WARM, 2 * WARM)  # what tracemalloc did not see made is made anew
        before = tracemalloc.get_traced_memory()[0]
        await type_edits(2 * WARM, 2 * WARM + EDITS)
        growth = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    await session.close()
    assert growth / EDITS <= MOST_BYTES_PER_EDIT
