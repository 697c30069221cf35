"""A long day of typing: what is kept per edit is bounded."""

import asyncio
import gc
import tracemalloc

from in_process import make_session

from kernel_lsp.documents import Change
from kernel_lsp.facts import service, store
from kernel_lsp.positions import Position, Range
from search_engine.frontends.syntax_digest import syntax_digest
from search_engine.frontends.triton_pieces import place_piece, read_piece

WARM, EDITS = 40, 120
MOST_BYTES_PER_EDIT = 512


async def test_edits_leave_nothing_behind(tmp_path, kernel, monkeypatch):
    monkeypatch.setattr(service, "SHORTEST_PAUSE", 0.0)
    monkeypatch.setattr("kernel_lsp.session.TOGETHER_SECONDS", 0.0)
    monkeypatch.setattr(store, "KEPT", 20)
    session = make_session(tmp_path)
    editor = session.client
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
