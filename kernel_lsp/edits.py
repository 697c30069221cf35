"""Edits behind "Apply", "Revert", "Declare" and "Ignore": for the text in the buffer, or refused.

A verdict holds for one form of a unit. If the unit in the buffer has another hash the edit is
refused; text is never merged into verified code.
"""

from __future__ import annotations

import re

from kernel_lsp import engine
from kernel_lsp.client import FileEdit
from kernel_lsp.engine import Version
from kernel_lsp.offers import Offer
from kernel_lsp.positions import body
from kernel_lsp.snapshot import Snapshot, UnitView
from search_engine.domain.candidate import TextEdit, apply_edits
from search_engine.domain.finding import Finding

_IGNORE = re.compile(r"#[ \t]*kernel-lsp:[ \t]*ignore[ \t]*\[(?P<names>[^\]\n]*)\]")


class EditRefused(Exception):
    """The edit cannot be made; the message says why and what to do."""


def applying(offer: Offer, snapshot: Snapshot) -> FileEdit:
    """The edit that turns the unit in the buffer into the candidate. Raises EditRefused."""
    view = snapshot.unit(offer.name, offer.unit_hash)
    if view is None:
        raise EditRefused(f"{offer.name} is no longer in this file")
    if view.hash == offer.candidate_hash:
        raise EditRefused(f"this rewrite of {offer.name} is in the file already")
    if view.hash != offer.unit_hash:
        raise EditRefused(
            f"{offer.name} changed since the run; use “Re-verify {offer.name}” or review the diff"
        )
    label = f"Apply {offer.label} of {offer.name}"
    return _replace(
        offer.original, offer.candidate.text, offer.candidate_hash, view, snapshot, label
    )


def reverting(offer: Offer, snapshot: Snapshot) -> FileEdit:
    """The edit that takes an applied candidate back. Raises EditRefused."""
    view = snapshot.unit(offer.name, offer.candidate_hash)
    if view is None or view.hash != offer.candidate_hash:
        raise EditRefused(f"{offer.name} changed since the rewrite was applied; undo it by hand")
    label = f"Revert {offer.name} to its form before {offer.run_id}"
    return _replace(offer.candidate.text, offer.original, offer.unit_hash, view, snapshot, label)


def declaring(name: str, snapshot: Snapshot) -> FileEdit:
    """The edit that writes a first workload declaration. Raises EditRefused."""
    view = snapshot.unit(name)
    if view is None or view.unit.entry is None:
        raise EditRefused(f"no function in this file launches {name}")
    if view.workload is not None:
        raise EditRefused(f"{name} has a workload already")
    lines = engine.declare(snapshot.module, view.unit.entry)
    start = snapshot.line_start(view.unit.entry.span.start)
    edits = (TextEdit(start, start, lines),)
    return FileEdit(snapshot, edits, f"Declare a workload for {name}", None, name)


def ignoring(finding: Finding, snapshot: Snapshot, kernel: str) -> FileEdit:
    """The edit that hides a finding by a comment on its line."""
    line = snapshot.lines[finding.line]
    start = snapshot.starts[finding.line]
    known = _IGNORE.search(line)
    code = body(line).rstrip()
    if known is not None:
        at, text = known.end("names"), f", {finding.name}"
    elif code.endswith("\\") or '"""' in code or "'''" in code:
        at, indent = 0, code[: len(code) - len(code.lstrip())]
        end = line[len(body(line)) :] or "\n"
        text = f"{indent}# kernel-lsp: ignore[{finding.name}]{end}"
    else:
        at, text = len(code), f"  # kernel-lsp: ignore[{finding.name}]"
    offset = start + len(line[:at].encode())
    edits = (TextEdit(offset, offset, text),)
    return FileEdit(snapshot, edits, f"Ignore {finding.name}", None, kernel)


def _replace(
    before: str, after: str, wanted: str, view: UnitView, snapshot: Snapshot, label: str
) -> FileEdit:
    """Turn the unit of the buffer into that of ``after``, which was made from ``before``."""
    base = _version(before, view.hash, snapshot.path)
    made = _version(after, wanted, snapshot.path)
    try:
        edits = engine.transplant(base, made, Version(snapshot.text, view.unit))
    except ValueError as error:
        raise EditRefused(f"the rewrite cannot be placed: {error}") from error
    text = apply_edits(snapshot.text, edits)
    _version(text, wanted, snapshot.path)
    return FileEdit(snapshot, edits, label, wanted, view.name)


def _version(text: str, unit_hash: str, path: str) -> Version:
    """The text with its unit of that hash; the hash is checked on what is really written."""
    for unit in engine.parse_module(text, path).units:
        if unit.hash == unit_hash:
            return Version(text, unit)
    raise EditRefused("the rewrite is not the one that was verified; nothing was changed")
