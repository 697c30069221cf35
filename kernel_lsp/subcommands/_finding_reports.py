"""Findings for other programs: JSON (``schemas/diagnose.json``), SARIF 2.1.0 and GitHub."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from kernel_lsp.subcommands._file_findings import FileFindings
from search_engine.domain.codec import encode
from search_engine.domain.finding import Finding, Severity
from search_engine.domain.summary import KernelSummary

Shown = Iterable[tuple[FileFindings, tuple[Finding, ...]]]
"""Files, and those of their findings that are reported."""

_SARIF_LEVELS = {
    Severity.WARNING: "warning",
    Severity.INFORMATION: "note",
    Severity.HINT: "note",
}
_SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def json_document(shown: Shown) -> dict[str, Any]:
    """The contract of ``--format json``."""
    files = list(shown)
    return {
        "findings": [_record(file, item) for file, found in files for item in found],
        "kernels": [_summary(file, summary) for file, _ in files for summary in file.summaries],
    }


def sarif_document(shown: Shown) -> dict[str, Any]:
    """One run with a rule for each code that was found."""
    results = [(file, item) for file, found in shown for item in found]
    rules = dict(sorted({item.code: item for _, item in results}.items()))
    order = {code: index for index, code in enumerate(rules)}
    driver = {
        "name": "kernel-lsp",
        "version": importlib.metadata.version("kernel-lsp"),
        "rules": [_rule(item) for item in rules.values()],
    }
    return {
        "$schema": _SARIF_SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": driver},
                "columnKind": "unicodeCodePoints",
                "results": [_result(file, item, order[item.code]) for file, item in results],
            }
        ],
    }


def github_lines(shown: Shown) -> Iterator[str]:
    """Workflow commands that GitHub shows beside the changed lines."""
    for file, found in shown:
        for item in found:
            level = "warning" if item.severity is Severity.WARNING else "notice"
            title = f"{item.code} {item.name}"
            about = ", ".join(part for part in (item.kernel, item.target) if part)
            fields = {
                "file": Path(item.path).as_posix(),
                "line": item.line + 1,
                "endLine": max(item.line, item.end_line) + 1,
                "col": file.column(item.start),
                "title": title,
            }
            shown_fields = ",".join(f"{key}={_property(value)}" for key, value in fields.items())
            message = f"{item.message} [{about}]" if about else item.message
            yield f"::{level} {shown_fields}::{_escaped(message)}"


def _record(file: FileFindings, finding: Finding) -> dict[str, Any]:
    return {
        "path": finding.path,
        "line": finding.line + 1,
        "column": file.column(finding.start),
        "end_line": finding.end_line + 1,
        "kernel": finding.kernel,
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity.value,
        "message": finding.message,
        "target": finding.target,
        "facts": finding.facts,
        "assumed": finding.assumed,
        "rule": finding.rule,
        "related": [
            {"line": item.line + 1, "column": file.column(item.start), "message": item.message}
            for item in finding.related
        ],
    }


def _summary(file: FileFindings, summary: KernelSummary) -> dict[str, Any]:
    data = encode(summary)
    del data["type"]
    for access in data["accesses"]:
        del access["type"]
        access["line"] += 1
    notes = file.notes(summary.kernel, summary.target)
    return {"path": file.file.shown, **data, "notes": list(notes)}


def _rule(finding: Finding) -> dict[str, Any]:
    return {
        "id": finding.code,
        "name": finding.name,
        "shortDescription": {"text": finding.name.replace("-", " ")},
        "help": {"text": f"docs/findings.md#{finding.code.lower()}"},
        "defaultConfiguration": {"level": _SARIF_LEVELS[finding.severity]},
    }


def _result(file: FileFindings, finding: Finding, rule: int) -> dict[str, Any]:
    location: dict[str, Any] = _location(file, finding.line, finding.start)
    region = location["physicalLocation"]["region"]
    region["endLine"] = finding.end_line + 1
    region["endColumn"] = file.column(finding.end)
    if finding.kernel:
        location["logicalLocations"] = [{"name": finding.kernel, "kind": "function"}]
    related = [
        {**_location(file, item.line, item.start), "id": index, "message": {"text": item.message}}
        for index, item in enumerate(finding.related)
    ]
    return {
        "ruleId": finding.code,
        "ruleIndex": rule,
        "level": _SARIF_LEVELS[finding.severity],
        "message": {"text": finding.message},
        "locations": [location],
        **({"relatedLocations": related} if related else {}),
        "partialFingerprints": {"kernelLsp/v1": file.fingerprint(finding)},
        "properties": {
            "target": finding.target,
            "assumed": finding.assumed,
            "rule": finding.rule,
            "facts": finding.facts,
        },
    }


def _location(file: FileFindings, line: int, start: int) -> dict[str, Any]:
    path = Path(file.file.shown)
    uri = path.as_uri() if path.is_absolute() else quote(path.as_posix())
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": uri},
            "region": {"startLine": line + 1, "startColumn": file.column(start)},
        }
    }


def _escaped(value: object) -> str:
    return str(value).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(value: object) -> str:
    return _escaped(value).replace(":", "%3A").replace(",", "%2C")
