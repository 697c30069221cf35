"""Edits between two texts: minimal line hunks, diffs, and carrying a rewrite to an edited file.

Offsets are bytes of the UTF-8 text, as everywhere in the domain. A line ends after ``\\n`` only.
"""

from __future__ import annotations

import difflib
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from search_engine.domain.candidate import TextEdit
from search_engine.domain.kernel import Entry, Kernel, Span, Unit
from search_engine.frontends.syntax_digest import canonical_tokens


def hunks(old: str, new: str) -> tuple[TextEdit, ...]:
    """Whole-line edits, in file order, that turn ``old`` into exactly ``new``."""
    return tuple(
        TextEdit(hunk.old_start, hunk.old_end, hunk.text) for hunk in _line_hunks(old, new)
    )


def unified_diff(old: str, new: str, path: str) -> str:
    """A diff that ``git apply`` accepts; empty if the texts are equal."""
    name = path.lstrip("/")
    lines = difflib.unified_diff(_lines(old), _lines(new), f"a/{name}", f"b/{name}")
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


def changes_only(old: str, new: str, spans: tuple[Span, ...]) -> bool:
    """True if every changed line lies in one of ``spans`` or in the blank lines around them."""
    data = old.encode()
    allowed = [_with_blanks(data, *_whole_lines(data, span)) for span in spans]
    return all(
        any(start <= hunk.start and hunk.end <= end for start, end in _merged(allowed))
        for hunk in hunks(old, new)
    )


def transplant(
    base_text: str,
    base_unit: Unit,
    candidate_text: str,
    candidate_unit: Unit,
    current_text: str,
    current_unit: Unit,
) -> tuple[TextEdit, ...]:
    """Edits of ``current_text`` that give its unit the candidate's form.

    The candidate was derived from ``base_text``. Elsewhere the current text may differ in any way;
    its unit may have moved or been reformatted. Definitions that the candidate adds directly before
    or after a part of the unit come along. Line ends follow the current text. Raises ValueError if
    the unit's syntax changed, or if the candidate changes anything outside the unit.
    """
    if base_unit.hash != current_unit.hash:
        raise ValueError(f"{base_unit.kernel.name} changed since the candidate was made")
    if not changes_only(base_text, candidate_text, base_unit.spans):
        raise ValueError("the candidate changes text outside the unit")
    here = _parts(current_unit)
    data = current_text.encode()
    newline = "\r\n" if "\r\n" in current_text else "\n"
    edits: list[TextEdit] = []
    for region in _regions(base_text, base_unit, candidate_text, candidate_unit):
        if region.name not in here:
            raise ValueError(f"{region.name[1]} is not in the file any more")
        start, end = _whole_lines(data, here[region.name])
        now = data[start:end].decode()
        wanted = region.text.replace("\r\n", "\n").replace("\n", newline)
        wanted = _final_newline(_indented_like(wanted, region.indent, _indent(now)), now)
        edits.extend(
            TextEdit(start + edit.start, start + edit.end, edit.new_text)
            for edit in hunks(now, wanted)
        )
    return tuple(sorted(edits, key=lambda edit: (edit.start, edit.end)))


_PartName = tuple[str, str, int]
"""``(kind, qualified name, ordinal)``."""


@dataclass(frozen=True, slots=True)
class _Hunk:
    """Bytes ``[old_start, old_end)`` of the old text became ``[new_start, new_end)``: ``text``."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int
    text: str


@dataclass(frozen=True, slots=True)
class _Region:
    """The candidate's text for one part of the unit, without blank lines around it."""

    name: _PartName
    text: str
    indent: str


def _lines(text: str) -> list[str]:
    lines = [f"{line}\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def _line_hunks(old: str, new: str) -> Iterator[_Hunk]:
    if old == new:
        return
    before, after = _lines(old), _lines(new)
    head = _common(before, after)
    tail = _common(before[head:][::-1], after[head:][::-1])
    old_middle, new_middle = before[head : len(before) - tail], after[head : len(after) - tail]
    matcher = difflib.SequenceMatcher(None, old_middle, new_middle, autojunk=False)
    skipped = sum(len(line.encode()) for line in before[:head])
    old_at, new_at = _offsets(old_middle, skipped), _offsets(new_middle, skipped)
    for tag, i, j, k, m in matcher.get_opcodes():
        if tag != "equal":
            yield _Hunk(old_at[i], old_at[j], new_at[k], new_at[m], "".join(new_middle[k:m]))


def _common(left: list[str], right: list[str]) -> int:
    count = 0
    for a, b in zip(left, right, strict=False):
        if a != b:
            break
        count += 1
    return count


def _offsets(lines: list[str], start: int) -> list[int]:
    offsets = [start]
    for line in lines:
        offsets.append(offsets[-1] + len(line.encode()))
    return offsets


def _whole_lines(data: bytes, span: Span) -> tuple[int, int]:
    start = data.rfind(b"\n", 0, span.start) + 1
    stop = data.find(b"\n", max(span.end - 1, span.start))
    return start, len(data) if stop < 0 else stop + 1


def _with_blanks(data: bytes, start: int, end: int) -> tuple[int, int]:
    """The range with the blank lines before and after it."""
    while start > 0:
        line = data.rfind(b"\n", 0, start - 1) + 1
        if data[line:start].strip():
            break
        start = line
    while end < len(data):
        stop = data.find(b"\n", end)
        stop = len(data) if stop < 0 else stop + 1
        if data[end:stop].strip():
            break
        end = stop
    return start, end


def _merged(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ranges in order; those that overlap or touch become one."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _parts(unit: Unit) -> dict[_PartName, Span]:
    """The unit's definitions by identity; one that lies inside another belongs to that one."""
    listed: list[Kernel | Entry] = [unit.kernel, *unit.helpers, *unit.siblings]
    if unit.entry is not None:
        listed.append(unit.entry)
    parts: dict[_PartName, Span] = {}
    for part in listed:
        inside = any(o is not part and o.span.contains(part.span) for o in listed)
        if not inside:
            kind = "kernel" if isinstance(part, Kernel) else "entry"
            ordinal = part.ordinal if isinstance(part, Kernel) else 0
            parts[kind, part.qualified_name, ordinal] = part.span
    return dict(sorted(parts.items(), key=lambda item: item[1].start))


def _regions(
    base_text: str, base_unit: Unit, candidate_text: str, candidate_unit: Unit
) -> Iterator[_Region]:
    """The changed parts of the unit with what the candidate adds directly around them."""
    base, candidate = base_text.encode(), candidate_text.encode()
    changes = tuple(_line_hunks(base_text, candidate_text))
    there = _parts(candidate_unit)
    parts = list(_parts(base_unit).items())
    wide = [_with_blanks(base, *_whole_lines(base, span)) for _, span in parts]
    begin = 0
    for index, (name, span) in enumerate(parts):
        start, end = _whole_lines(base, span)
        follows = index > 0 and wide[index - 1][1] > wide[index][0]
        first = begin if follows else _moved(changes, wide[index][0], after=False)
        shared = index + 1 < len(parts) and wide[index][1] > wide[index + 1][0]
        if shared and name in there:
            last = _whole_lines(candidate, there[name])[1]
        elif shared:
            last = _moved(changes, end, after=False)
        else:
            last = _moved(changes, wide[index][1], after=True)
        begin = last
        text = _without_blanks(candidate[first:last].decode())
        before = base[start:end].decode()
        if text.rstrip("\r\n") != before.rstrip("\r\n"):
            yield _Region(name, text, _indent(before))


def _moved(changes: tuple[_Hunk, ...], offset: int, *, after: bool) -> int:
    """Where a line start of the old text is in the new one, before or after what is put there."""
    index = bisect_right([change.old_start for change in changes], offset if after else offset - 1)
    if index == 0:
        return offset
    change = changes[index - 1]
    return change.new_end + max(offset - change.old_end, 0)


def _without_blanks(text: str) -> str:
    lines = _lines(text)
    while lines and not lines[0].strip():
        lines.pop(0)
    while lines and not lines[-1].strip():
        lines.pop()
    return "".join(lines)


def _indent(text: str) -> str:
    return text[: len(text) - len(text.lstrip(" \t"))]


def _indented_like(text: str, indent: str, wanted: str) -> str:
    """The text moved to another indentation. Raises ValueError if a string would change."""
    if indent == wanted:
        return text
    moved = "".join(
        wanted + line.removeprefix(indent) if line.strip() else line for line in _lines(text)
    )
    if canonical_tokens(moved) != canonical_tokens(text):
        raise ValueError("the unit was moved to another indentation and holds a multi-line string")
    return moved


def _final_newline(text: str, like: str) -> str:
    """The text with a newline at its end exactly if ``like`` has one."""
    newline = "\r\n" if "\r\n" in text else "\n"
    return text.rstrip("\r\n") + (newline if like.endswith("\n") else "")
