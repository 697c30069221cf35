"""A session in this process: an editor that keeps nothing and a facts host without a compiler."""

from __future__ import annotations

import asyncio
from collections import deque
from types import SimpleNamespace

import fake_facts_host

from kernel_lsp.latency import Latencies
from kernel_lsp.places import Places
from kernel_lsp.session import Session
from kernel_lsp.trust import TrustStore
from kernel_lsp.workspace import Workspace
from search_engine.domain.facts_message import CancelRequest, Done, answer_from_line, to_line
from search_engine.frontends.triton import parse_module


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
        self.asked = deque(maxlen=20)

    def ask(self, request):
        self.asked.append(request)
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
    def __init__(self):
        self.hosts = []

    async def launch(self):
        self.hosts.append(Host())
        return self.hosts[-1]


def make_session(folder, settings=None):
    """A trusted session; its launcher is ``session.facts.link.launcher``."""
    workspace = Workspace(folder / "none")
    workspace.set_fallback(settings or {})
    return Session(
        client=Editor(),
        places=Places(folder, folder, folder),
        workspace=workspace,
        trust=TrustStore(folder / "trust.json", client=True),
        launcher=SimpleNamespace(),
        facts_launcher=Launcher(),
        latencies=Latencies(),
    )
