"""Tables of what the corpora gave."""

from __future__ import annotations

import json
import re
import statistics
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from benchmarks.corpus_recall import Recall

_MOST_REASONS = 25


def recall_table(results: list[Recall]) -> str:
    """Functions and launches found, by package."""
    rows = [
        "| package | files | functions | found | launches | found | slowest file |",
        "| --- | --: | --: | --: | --: | --: | --: |",
    ]
    rows += [
        f"| {r.package} | {r.files} | {r.functions} | {_share(r.functions_found, r.functions)} "
        f"| {r.launches} | {_share(r.launches_found, r.launches)} | {r.slowest_ms:.0f} ms |"
        for r in results
    ]
    total = [sum(getattr(r, name) for r in results) for name in
             ("files", "functions", "functions_found", "launches", "launches_found")]  # fmt: skip
    slowest = max((r.slowest_ms for r in results), default=0.0)
    rows.append(
        f"| all | {total[0]} | {total[1]} | {_share(total[2], total[1])} "
        f"| {total[3]} | {_share(total[4], total[3])} | {slowest:.0f} ms |"
    )
    return "\n".join(rows)


def compile_table(file: Path) -> str:
    """Shares by package and outcome, times, and the reasons of those that do not compile."""
    records = [json.loads(line) for line in file.read_text().splitlines() if line.strip()]
    packages: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for record in records:
        packages[record["package"]].append(record)
    rows = [
        "| package | kernels | compiled | as inferred | corrected | refused | not assumed "
        "| too slow or crash | median time |",
        "| --- | --: | --: | --: | --: | --: | --: | --: | --: |",
    ]
    rows += [_row(name, found) for name, found in packages.items()]
    rows.append(_row("all", records))
    return "\n".join([*rows, "", *_reasons(records)])


def compact(file: Path) -> str:
    """The lines without their notes, in the order of packages and files."""
    records = [json.loads(line) for line in file.read_text().splitlines() if line.strip()]
    for record in records:
        record.pop("notes", None)
    records.sort(key=lambda record: (record["package"], record["kernel"]))
    return "\n".join(json.dumps(record) for record in records) + "\n"


def _row(name: str, records: list[dict[str, Any]]) -> str:
    outcomes = Counter(record["outcome"] for record in records)
    compiled = [record for record in records if record["outcome"] == "compiled"]
    first = sum(record["attempts"] == 1 for record in compiled)
    median = statistics.median(r["seconds"] for r in compiled) if compiled else 0.0
    return (
        f"| {name} | {len(records)} | {_share(len(compiled), len(records))} | {first} "
        f"| {len(compiled) - first} | {outcomes['refused']} | {outcomes['not assumed']} "
        f"| {outcomes['too slow'] + outcomes['crash']} | {median:.1f} s |"
    )


def _reasons(records: list[dict[str, Any]]) -> list[str]:
    groups: dict[str, list[str]] = defaultdict(list)
    for record in records:
        if record["outcome"] != "compiled":
            groups[_kind(record["reason"])].append(record["kernel"])
    ordered = sorted(groups.items(), key=lambda pair: -len(pair[1]))
    rows = ["| kernels | reason | for example |", "| --: | --- | --- |"]
    rows += [
        f"| {len(kernels)} | {reason} | `{kernels[0]}` |"
        for reason, kernels in ordered[:_MOST_REASONS]
    ]
    rest = sum(len(kernels) for _, kernels in ordered[_MOST_REASONS:])
    return [*rows, f"| {rest} | other reasons | |"] if rest else rows


def _kind(reason: str) -> str:
    """A reason without its names and numbers, so that equal ones fall together."""
    if "tensor descriptor made by the host" in reason:
        return "takes a tensor descriptor that the host makes"
    text = re.sub(r"^\w*Error: |^at \d+:\d+:.*", "", reason)
    text = re.sub(r"triton\.language\.", "", text).partition(" in loop")[0]
    text = re.sub(r"<\[[^>]*>|\[[\d, ]*\]|\d+", "…", text).replace("|", "/")
    text = re.sub(r"(variable|type for|name) '?\w+'?", r"\1 …", text)
    return text[:110].strip() or reason[:60].replace("|", "/")


def _share(part: int, whole: int) -> str:
    return f"{part} ({part / whole:.1%})" if whole else "0"
