"""Domain values survive JSON, and data of an older version stays readable."""

from __future__ import annotations

import json

import pytest

from search_engine.domain.candidate import TextEdit, apply_edits
from search_engine.domain.codec import decode, encode
from search_engine.domain.job import (
    BatchJob,
    CheckJob,
    Completed,
    Depth,
    Job,
    JobResult,
    ProbeReply,
    Refusal,
    RefusalKind,
    Source,
)
from search_engine.domain.verdict import NotImproved, Speedup, TimedOut, Verdict
from search_engine.domain.workload import (
    Case,
    Distribution,
    Extent,
    ScalarArgument,
    TensorArgument,
    Values,
    Workload,
    WorkloadSource,
)

SOURCE = Source("c1", "/root", "/root/k.py", "k", "text\n", "entry")
TENSOR = TensorArgument(
    "x", "bf16", (Extent(8, "M"), Extent(4)), Values(Distribution.UNIFORM, (0.0, 1.0)), (4, 1)
)
WORKLOAD = Workload(
    "entry", WorkloadSource.DECLARED, (Case((TENSOR, ScalarArgument("eps", "1e-6")), 0.5, 3),)
)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Job, CheckJob(SOURCE, SOURCE, WORKLOAD, Depth.FULL, 7)),
        (Job, BatchJob((CheckJob(SOURCE, SOURCE, WORKLOAD, Depth.SMOKE, 7),))),
        (JobResult, Completed(Refusal(RefusalKind.COMPILE, "line 3", 2), 0.25)),
        (JobResult, Completed(ProbeReply("/py", "3.11", "", "", (), ("no torch",)), 1.0)),
        (Verdict, NotImproved(Speedup(1.0, 0.9, 1.1), "within noise")),
        (Verdict, TimedOut(3.0)),
    ],
)
def test_round_trip(kind: object, value: object) -> None:
    assert decode(kind, json.loads(json.dumps(encode(value)))) == value


def test_missing_field_takes_its_default_and_unknown_one_is_ignored() -> None:
    data = encode(Refusal(RefusalKind.RUNTIME, "oops", 4, True))
    del data["fatal"]
    data["added_later"] = 1
    assert decode(Refusal, data) == Refusal(RefusalKind.RUNTIME, "oops", 4, False)


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        (Refusal, {"kind": "compile"}),
        (Refusal, {"kind": "nonsense", "message": "m"}),
        (Refusal, []),
        (Job, {"type": "Nothing"}),
        (int, "3"),
        (tuple[int, int], [1]),
    ],
)
def test_data_that_does_not_fit_is_refused(kind: object, data: object) -> None:
    with pytest.raises(ValueError):
        decode(kind, data)


def test_edits_are_bytes_not_characters() -> None:
    text = "é = 1\nx = 2\n"
    start = text.encode().index(b"2")
    assert apply_edits(text, (TextEdit(start, start + 1, "3"),)) == "é = 1\nx = 3\n"


def test_overlapping_edits_are_refused() -> None:
    with pytest.raises(ValueError, match="overlap"):
        apply_edits("abcdef", (TextEdit(0, 3, "x"), TextEdit(2, 4, "y")))
