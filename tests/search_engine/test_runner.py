"""What a run proposes."""

from __future__ import annotations

from pathlib import Path

import pytest

from search_engine.domain.run import RunId
from search_engine.domain.target import Environment
from search_engine.request import prepare, request_from_json
from search_engine.runner import Runner
from search_engine.search.engine import Expand
from search_engine.targets.registry import target_named

SOFTMAX = Path(__file__).parents[2] / "examples" / "softmax.py"


class Nowhere:
    async def run(self, job: object, lane: object, deadline: float) -> object:
        raise AssertionError("proposing executes nothing")


@pytest.mark.parametrize("rules", [(), ("online-reduction",)])
def test_a_run_led_by_rules_proposes_those_alone(rules: tuple[str, ...]) -> None:
    text = SOFTMAX.read_text()
    prepared = prepare(
        request_from_json(
            {"path": str(SOFTMAX), "text": text, "root": str(SOFTMAX.parent), "rules": rules}
        )
    )
    environment = Environment(None, None, "3.11", "2.13.0", "3.6.0", "sm_90")
    runner = Runner(
        prepared, Nowhere(), None, RunId("r"), environment, None, target_named("sm_90"), print
    )  # fmt: skip
    ask = runner.engine.ask()
    assert isinstance(ask, Expand)
    proposed = runner._propose(ask, 1.0)
    used = {rule for candidate in proposed for rule in candidate.rules}
    assert used == set(rules) if rules else len(used) > 1
