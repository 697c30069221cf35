"""A probe reports what is there and says how to get what is not."""

import sys

from search_engine.domain.job import ProbeJob
from search_engine.worker import probe


def test_a_module_that_is_missing_is_a_problem_with_a_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "triton", None)
    monkeypatch.setitem(sys.modules, "torch", None)
    reply = probe.probe(ProbeJob())
    assert (reply.torch, reply.triton, reply.devices) == ("", "", ())
    assert len(reply.problems) == 2
    assert all(sys.executable in problem for problem in reply.problems)
    assert all("kernelLsp.worker.python" in problem for problem in reply.problems)


def test_warm_imports_skip_what_is_missing():
    assert probe.import_warm(("json", "no_such_module_here", "csv")) == ("json", "csv")
