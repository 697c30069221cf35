"""What a run is asked to do is checked before anything is executed."""

from __future__ import annotations

from pathlib import Path

import pytest

from search_engine.request import RequestError, prepare, request_from_json

SOFTMAX = Path(__file__).parents[2] / "examples" / "softmax.py"


def request(**changes: object):
    text = SOFTMAX.read_text()
    return request_from_json(
        {"path": str(SOFTMAX), "text": text, "root": str(SOFTMAX.parent), **changes}
    )


def test_a_run_may_be_led_by_named_rules() -> None:
    assert prepare(request(rules=["online-reduction"])).request.rules == ("online-reduction",)
    assert prepare(request()).request.rules == ()


def test_an_unknown_rule_is_refused_with_those_that_exist() -> None:
    with pytest.raises(RequestError, match=r"unknown rule 'faster'; known rules are .*online-red"):
        prepare(request(rules=["online-reduction", "faster"]))
