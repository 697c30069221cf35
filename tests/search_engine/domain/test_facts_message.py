from __future__ import annotations

import pytest

from search_engine.domain.facts_message import (
    CancelRequest,
    Done,
    FactsHostAnswer,
    FactsHostRequest,
    FactsMessageError,
    FactsRequest,
    ListingFound,
    ListingRequest,
    StaticFindings,
    UnitFindings,
    answer_from_line,
    request_from_line,
    to_line,
    top_findings,
)
from search_engine.domain.finding import Finding, Related, Severity
from search_engine.domain.job import Refusal, RefusalKind
from search_engine.domain.kernel import OperationKind
from search_engine.domain.summary import AccessWidth, KernelSummary


def finding(
    line: int, cost: float = 0.1, severity: Severity = Severity.HINT, code: str = "KL105"
) -> Finding:
    return Finding(
        "k.py", line, line, 10, 20, "k", code, "narrow-access", severity,
        "32 loads of 4 B where 8 of 16 B would do", "sm_90",
        {"count": 32, "share": 0.5, "width": "4 B"}, cost, (Related(3, 30, 40, "stride"),),
        "specialise-sizes", True,
    )  # fmt: skip


FILE = FactsRequest(
    "1", "/w/k.py", "/w", "# ü\n", ("sm_90",), None, None, {"A": "b"}, ("k",), ("KL105",)
)
SUMMARY = KernelSummary(
    "k", "sm_90", False, 1, (8, 1, 1), 4, 3, 32, 0, 1024, 0.5, ("registers",), 300, 8,
    (AccessWidth(4, OperationKind.LOAD, 16, 8),), 1 << 20, 0.25,
)  # fmt: skip


@pytest.mark.parametrize(
    "request_",
    [FILE, ListingRequest("2", FILE, "k", "sm_90", 4), CancelRequest("1")],
    ids=lambda item: type(item).__name__,
)
def test_a_request_arrives_as_it_was_sent(request_: FactsHostRequest) -> None:
    line = to_line(request_)
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert request_from_line(line) == request_


@pytest.mark.parametrize(
    "answer",
    [
        StaticFindings("1", (finding(3),)),
        UnitFindings("1", "k", "abc", "sm_90", SUMMARY, (finding(3),), ("assumed n",)),
        UnitFindings(
            "1", "k", "abc", "sm_90", None, (), (), Refusal(RefusalKind.COMPILE, "no", 4)
        ),
        ListingFound("2", "k", "sm_90", "LDG\nSTG\n", (4, None), 0),
        Done("1", problem="no such target"),
    ],
    ids=lambda item: type(item).__name__,
)  # fmt: skip
def test_an_answer_arrives_as_it_was_sent(answer: FactsHostAnswer) -> None:
    assert answer_from_line(to_line(answer)) == answer


def test_whole_numbers_of_a_finding_stay_whole() -> None:
    answer = answer_from_line(to_line(StaticFindings("1", (finding(3),))))
    assert isinstance(answer, StaticFindings)
    facts = answer.findings[0].facts
    assert (repr(facts["count"]), repr(facts["share"])) == ("32", "0.5")


@pytest.mark.parametrize(
    "line",
    [b"", b"{}", b"[]", b"7", b'{"kind":"facts"}', b'{"kind":"cancel","id":7}', b'{"kind":"x"}'],
)
def test_a_line_that_is_no_message_is_refused(line: bytes) -> None:
    with pytest.raises(FactsMessageError):
        request_from_line(line)


def test_an_editor_gets_all_warnings_and_the_costliest_others_by_line() -> None:
    warning = finding(9, 0.0, Severity.WARNING, "KL251")
    hints = tuple(finding(line, line / 10) for line in range(8))
    assert [item.line for item in top_findings((*hints, warning), 3)] == [5, 6, 7, 9]
