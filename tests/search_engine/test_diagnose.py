"""Findings of the text, of refusals and of checks; what is hidden; what cannot matter."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest
from fake_executor import DECLARED, HEAD, KERNEL, code_of, line_with, text_of

from search_engine.diagnose import (
    NAMES,
    facts_findings,
    not_ignored,
    static_findings,
    without_answered,
)
from search_engine.domain.finding import Finding, Severity
from search_engine.domain.job import Refusal, RefusalKind
from search_engine.domain.kernel import Module
from search_engine.facts import LaunchSource, UnitFacts, heaviest_run
from search_engine.findings._base import Check, Subject, finding
from search_engine.findings.registry import CHECKS
from search_engine.frontends.ignore_comments import ignore_comments
from search_engine.frontends.triton import parse_module
from search_engine.frontends.workload import parse_workloads

TEXT = text_of("a")


@dataclass
class Loads:
    """Finds every load."""

    code: str = "KL105"
    name: str = "narrow-access"
    severity: Severity = Severity.HINT
    shown: bool = True
    cost: float = 0.5

    def findings(self, subject: Subject) -> Iterator[Finding]:
        for launch in subject.launches:
            line = launch.lines[0].line
            assert line is not None
            yield finding(self, subject, subject.line_span(line), "narrow", self.cost)


class Broken(Loads):
    def findings(self, subject: Subject) -> Iterator[Finding]:
        yield from super().findings(subject)
        raise ZeroDivisionError


def static(text: str) -> list[tuple[str, int]]:
    module = parse_module(text, "k.py")
    found = static_findings(module, *parse_workloads(module))
    return [(item.code, item.line) for item in found]


def facts_of(text: str = TEXT, **changes: object) -> tuple[Module, UnitFacts]:
    module = parse_module(text, "k.py")
    facts = UnitFacts(
        module.units[0], "sm_90", LaunchSource.WORKLOAD, launches=(code_of("a", text),)
    )
    return module, replace(facts, **changes)


def test_a_kernel_that_is_ready_has_no_static_findings() -> None:
    assert static(TEXT) == []


def test_what_the_text_shows_stands_in_line_order() -> None:
    text = text_of("a", "b", declaration="# kernel-lsp: workload y=f32[8]")
    found = static(text)
    assert [code for code, _ in found] == ["KL002", "KL802", "KL002", "KL802"]
    assert [line for _, line in found] == sorted(line for _, line in found)
    assert static(text_of("a", declaration="#")) == [("KL803", line_with(TEXT, "def a_kernel"))]
    assert static(TEXT + "def (")[-1][0] == "KL002"


def test_no_data_is_not_said_of_a_kernel_that_has_some() -> None:
    text = HEAD + KERNEL.format(name="a") + KERNEL.format(name="b")
    module = parse_module(text, "k.py")
    found = static_findings(module, *parse_workloads(module))
    assert {(item.code, item.kernel) for item in found} == {
        ("KL002", "a_kernel"), ("KL002", "b_kernel"),
    }  # fmt: skip
    known = UnitFacts(module.units[0], "sm_90", launches=(code_of("a", TEXT),))
    unknown = UnitFacts(module.units[1], "sm_90")
    assert [f.kernel for f in without_answered(found, (known, unknown))] == ["b_kernel"]


def test_why_a_workload_cannot_be_run_stays_beside_an_assumed_launch() -> None:
    text = TEXT.replace(DECLARED, "class Model:\n  " + DECLARED)
    start = text.index("def a(")
    text = text[:start] + "  " + text[start:].replace("\n    ", "\n      ")
    module = parse_module(text, "k.py")
    found = static_findings(module, *parse_workloads(module))
    assert "say how to call it" in found[0].message
    assert heaviest_run(module.units[0], parse_workloads(module)[0]) is None
    assumed = UnitFacts(module.units[0], "sm_90", launches=(code_of("a", TEXT, assumed=True),))
    assert without_answered(found, (assumed,)) == found


def test_a_compile_error_stands_on_its_line() -> None:
    line = line_with(TEXT, "tl.load")
    refusal = Refusal(RefusalKind.COMPILE, "CompilationError: no such thing", line)
    module, facts = facts_of(launches=(), refusal=refusal)
    (found,) = facts_findings(module, facts, checks=())
    assert (found.code, found.severity, found.line) == ("KL101", Severity.WARNING, line)
    assert (
        TEXT.encode()[found.start : found.end].decode().strip() == TEXT.splitlines()[line].strip()
    )
    assert found.message == "CompilationError: no such thing"
    assert found.target == "sm_90"


@pytest.mark.parametrize("line", [None, 10**6])
def test_a_compile_error_without_a_line_stands_somewhere_in_the_file(line: int | None) -> None:
    refusal = Refusal(RefusalKind.COMPILE, "too much shared memory", line)
    module, facts = facts_of(launches=(), refusal=refusal)
    (found,) = facts_findings(module, facts, checks=())
    assert found.code == "KL101"
    assert 0 <= found.line < len(TEXT.split("\n"))


def test_an_assumed_launch_that_does_not_compile_is_no_warning() -> None:
    refusal = Refusal(RefusalKind.COMPILE, "CompilationError: wrong types", 8)
    module, facts = facts_of(launches=(), refusal=refusal, source=LaunchSource.ASSUMED)
    (found,) = facts_findings(module, facts, checks=())
    assert (found.code, found.severity) == ("KL002", Severity.INFORMATION)
    assert found.assumed


def test_a_workload_that_does_not_run_is_said_though_there_are_facts() -> None:
    refusal = Refusal(RefusalKind.RUNTIME, "ValueError: bad shape")
    module, facts = facts_of(refusal=refusal, source=LaunchSource.ASSUMED)
    (found,) = facts_findings(module, facts, checks=())
    assert found.message == "no data from the workload: ValueError: bad shape"


def test_a_missing_module_is_no_finding_of_a_kernel() -> None:
    refusal = Refusal(RefusalKind.ENVIRONMENT, "Python module `triton` is missing")
    module, facts = facts_of(launches=(), refusal=refusal)
    assert facts_findings(module, facts, checks=(Loads(),)) == ()


def codes(*checks: Check, everything: bool = False) -> list[str]:
    module, facts = facts_of()
    return [item.code for item in facts_findings(module, facts, everything, checks)]


def test_checks_are_run_and_what_cannot_matter_is_left_out() -> None:
    cheap = Loads("KL110", cost=0.001)
    quiet = Loads("KL111", shown=False)
    loud = Loads("KL251", severity=Severity.WARNING, cost=0.0)
    assert codes(Loads(), cheap, quiet, loud) == ["KL105", "KL251"]
    assert codes(Loads(), cheap, quiet, loud, everything=True) == [
        "KL105", "KL110", "KL111", "KL251",
    ]  # fmt: skip


def test_a_check_that_fails_costs_its_own_findings(caplog: pytest.LogCaptureFixture) -> None:
    assert codes(Broken("KL104"), Loads()) == ["KL105"]
    assert "KL104 failed on a_kernel" in caplog.text


def test_nothing_known_means_no_check_is_run() -> None:
    module, facts = facts_of(launches=())
    assert facts_findings(module, facts, checks=(Broken(),)) == ()


@pytest.mark.parametrize("hide", ["KL105", "narrow-access"])
def test_settings_and_comments_hide_by_code_or_name(hide: str) -> None:
    module, facts = facts_of()
    found = facts_findings(module, facts, checks=(Loads(), Loads("KL107", "uncoalesced-access")))
    assert [item.code for item in not_ignored(found, (), (hide,))] == ["KL107"]
    load = next(line for line in TEXT.splitlines() if "tl.load" in line)
    commented = TEXT.replace(load, f"{load}  # kernel-lsp: ignore[{hide}]")
    module, facts = facts_of(commented)
    found = facts_findings(module, facts, checks=(Loads(), Loads("KL107", "uncoalesced-access")))
    assert [item.code for item in not_ignored(found, ignore_comments(module), ())] == ["KL107"]


def test_codes_are_unique_and_names_are_kebab_case() -> None:
    found = [(check.code, check.name) for check in CHECKS] + list(NAMES.items())
    assert len({code for code, _ in found}) == len(found)
    assert len({name for _, name in found}) == len(found)
    assert all(name == name.lower() and " " not in name and "_" not in name for _, name in found)
