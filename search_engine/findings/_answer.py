"""Which rewrite rule answers a finding: one that does offer a rewrite of this very unit."""

from __future__ import annotations

from search_engine.findings._base import Subject
from search_engine.rules._subject import make_subject
from search_engine.rules.registry import rule_named


def answering(subject: Subject, *names: str) -> str | None:
    """The first of these rules that applies; None without a workload, since rules need one."""
    if subject.workload is None:
        return None
    unit = make_subject(subject.module, subject.unit, subject.workload, subject.target)
    if unit is None:
        return None
    return next((name for name in names if rule_named(name).rewrites(unit)), None)
