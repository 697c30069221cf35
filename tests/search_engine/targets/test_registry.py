"""Looking targets up."""

import pytest

from search_engine.targets.registry import (
    TARGETS,
    UnknownTargetError,
    target_named,
    target_of_capability,
)


def test_finds_a_target_by_name():
    assert [target_named(target.name) for target in TARGETS] == list(TARGETS)


def test_finds_a_target_by_capability():
    assert target_of_capability(9, 0).name == "sm_90"
    assert target_of_capability(10, 0).name == "sm_100"


def test_an_unknown_name_lists_what_exists():
    with pytest.raises(UnknownTargetError, match=r"sm_90.*gfx942") as raised:
        target_named("sm_35")
    assert isinstance(raised.value, KeyError)
    with pytest.raises(UnknownTargetError):
        target_of_capability(3, 5)
