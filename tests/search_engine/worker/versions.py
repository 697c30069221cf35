"""Workloads and versions for tests of the worker, written as a user would write them."""

from __future__ import annotations

import itertools
from pathlib import Path

from search_engine.domain.job import Source
from search_engine.domain.workload import Case, Reference, Workload, WorkloadSource
from search_engine.frontends.declaration_arguments import (
    named_extents,
    named_value,
    scalar,
    tensor,
)
from search_engine.frontends.declaration_lines import Item

_numbers = itertools.count()


def case(text: str) -> Case:
    """``x=f32[M:4,N:8] eps=1e-6``; items must not contain blanks."""
    items = [named_value(Item(part, 0)) for part in text.split()]
    sizes = named_extents(items)
    return Case(
        tuple(
            tensor(item, item.name, sizes) if item.is_tensor else scalar(item, item.name, sizes)
            for item in items
        )
    )


def workload(*cases: str, reference: str | None = None, **fields) -> Workload:
    references = () if reference is None else (Reference(reference, None, None),)
    fields.setdefault("references", references)
    return Workload("run", WorkloadSource.DECLARED, tuple(map(case, cases)), **fields)


def version(root: Path, body: str, parameters: str = "x", header: str = "import torch\n") -> Source:
    """A module whose entry ``run`` has this body."""
    indented = "\n".join(f"    {line}" for line in body.splitlines())
    text = f"{header}\ndef run({parameters}):\n{indented}\n"
    return source(root, text)


def source(root: Path, text: str, entry: str = "run") -> Source:
    path = root / "version_under_test.py"
    return Source(f"v{next(_numbers)}", str(root), str(path), "version_under_test", text, entry)
