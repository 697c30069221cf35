"""Settings: what is understood, who wins, and what a project may not set."""

import json
import re
from pathlib import Path

import jsonschema
import pytest

from kernel_lsp.settings import Settings, merge, override, parse, project_layer, schema

SCHEMA = Path(__file__).parents[2] / "schemas" / "settings.json"


def test_defaults_are_complete():
    settings, problems = parse({})
    assert problems == ()
    assert settings.budget_request == {"wallSeconds": 120.0}
    assert settings.trust == "ask"


def test_wrong_values_are_told_and_left_at_default():
    settings, problems = parse(
        {
            "effort": "huge",
            "budget": {"wallSeconds": -1, "evaluations": 7},
            "worker": {"env": {"A": "1"}, "python": ""},
            "ignore": "KL001",
            "colour": 1,
        }
    )
    assert settings.effort == "normal" and settings.budget.wall_seconds is None
    assert settings.budget.evaluations == 7 and settings.worker.python is None
    assert settings.worker.env == {"A": "1"}
    told = " ".join(problems)
    assert all(key in told for key in ("effort", "wallSeconds", "ignore", "colour"))


def test_later_layers_win_key_by_key():
    merged = merge({"budget": {"wallSeconds": 5, "evaluations": 2}}, {"budget": {"wallSeconds": 9}})
    assert merged == {"budget": {"wallSeconds": 9, "evaluations": 2}}
    assert merge({"effort": "quick"}, {"effort": None}) == {"effort": "quick"}


def test_a_project_names_no_executable(tmp_path):
    (tmp_path / "pyproject.toml").write_text(
        '[tool.kernel-lsp]\neffort = "quick"\ntrust = "always"\n'
        "budget.wall-seconds = 9\n"
        '[tool.kernel-lsp.worker]\npython = "/bin/evil"\n'
    )
    data, refused = project_layer(tmp_path)
    settings, _ = parse(data)
    assert settings.effort == "quick" and settings.budget_seconds == 9
    assert settings.worker.python is None and settings.trust == "ask"
    assert len(refused) == 2


def test_broken_project_files_change_nothing(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool.kernel-lsp\n")
    assert project_layer(tmp_path) == ({}, ())
    (tmp_path / "pyproject.toml").write_text("[tool]\nkernel-lsp = 3\n")
    assert project_layer(tmp_path)[0] == {}


def test_a_command_may_bring_effort_and_budget():
    settings, _ = parse({"budget": {"wallSeconds": 300}, "device": "none"})
    assert override(settings, {"effort": "quick"}).budget_seconds == 60
    assert override(settings, {"budget": {"wallSeconds": 8}}).budget_seconds == 8
    assert override(settings, {}) == settings


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ({"effort": "bogus"}, 'effort is "bogus"; it must be quick, normal or thorough'),
        ({"budget": {"wallSeconds": -1}}, "budget.wallSeconds is -1; it must be above zero"),
        ({"budget": {"evaluations": 0}}, "budget.evaluations is 0; it must be above zero"),
        ({"budget": {"evaluations": float("inf")}}, "budget.evaluations is Infinity; it must be"),
        (
            {"budget": {"wallSeconds": "1"}},
            'budget.wallSeconds is "1"; it must be a number above zero',
        ),
        ({"budget": {"coffee": 1}}, "budget.coffee is not a setting; known are wallSeconds, "),
        ({"ignore": "KL001"}, 'ignore is "KL001"; it must be a list of texts'),
        ({"worker": {"python": 3}}, "worker.python is 3; it must be text"),
    ],
)
def test_what_is_refused_is_named_with_what_is_allowed(data, sentence):
    _, problems = parse(data)
    assert len(problems) == 1
    assert problems[0].startswith(f"kernelLsp.{sentence}")
    with pytest.raises(ValueError, match=re.escape(sentence)):
        override(Settings(), data)


def test_the_schema_file_is_current_and_accepts_an_example():
    assert json.loads(SCHEMA.read_text()) == schema()
    example = {"worker": {"python": None}, "effort": "quick", "budget": {"wallSeconds": 10}}
    jsonschema.validate(example, schema())
