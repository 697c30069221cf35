"""Open documents: their present text, kept line by line, and the edits since the last analysis.

A change is applied on the message path, so it must cost well under a millisecond on thousands of
lines: only the touched lines are split again. Everything slow (parsing, hashing) happens later in
a thread, on a frozen copy of the text.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kernel_lsp.positions import Encoding, Position, Range, clean, index_at, split_lines


@dataclass(frozen=True, slots=True)
class Change:
    """One content change; ``range`` None replaces the whole text."""

    range: Range | None
    text: str


@dataclass(frozen=True, slots=True)
class LineShift:
    """Lines ``[start, end)`` were replaced by ``count`` lines."""

    start: int
    end: int
    count: int


@dataclass(slots=True)
class Document:
    """One open document; mutable, owned by the session."""

    uri: str
    path: str
    root: str
    version: int
    lines: list[str]
    shifts: list[tuple[int, LineShift]] = field(default_factory=list[tuple[int, LineShift]])
    """Edits with the version that they led to, oldest first."""

    @classmethod
    def opened(cls, uri: str, path: str, root: str, version: int, text: str) -> Document:
        """A document as ``didOpen`` brings it."""
        return cls(uri, path, root, version, split_lines(clean(text)))

    @property
    def text(self) -> str:
        """The whole present text."""
        return "".join(self.lines)

    def apply(self, version: int, changes: tuple[Change, ...], encoding: Encoding) -> None:
        """Apply the changes of one message, in order."""
        for change in changes:
            self._apply_one(version, change, encoding)
        self.version = version

    def forget_shifts(self, version: int) -> None:
        """Drop the edits that an analysis of ``version`` has seen."""
        self.shifts = [item for item in self.shifts if item[0] > version]

    def current_line(self, line: int, since_version: int) -> int:
        """Where line ``line`` of an earlier version is now; an edited line maps to its start."""
        for version, shift in self.shifts:
            if version > since_version:
                line = _shifted(line, shift)
        return max(0, min(line, len(self.lines) - 1))

    def line_then(self, line: int, version: int) -> int:
        """Where the present line ``line`` was in an earlier version."""
        for later, shift in reversed(self.shifts):
            if later > version:
                line = _unshifted(line, shift)
        return max(0, line)

    def _apply_one(self, version: int, change: Change, encoding: Encoding) -> None:
        text = clean(change.text)
        if change.range is None:
            count = len(self.lines)
            self.lines = split_lines(text)
            self._note(version, LineShift(0, count, len(self.lines)))
            return
        start, first = self._locate(change.range.start, encoding)
        end, last = self._locate(max(change.range.start, change.range.end), encoding)
        joined = self.lines[start][:first] + text + self.lines[end][last:]
        if start and joined.startswith("\n") and self.lines[start - 1].endswith("\r"):
            start -= 1  # the two signs become one line end
            joined = self.lines[start] + joined
        replacement = split_lines(joined)
        if end + 1 < len(self.lines):
            replacement.pop()  # the end of the last touched line stands in ``joined``
        self.lines[start : end + 1] = replacement
        self._note(version, LineShift(start, end + 1, len(replacement)))

    def _locate(self, position: Position, encoding: Encoding) -> tuple[int, int]:
        if position.line >= len(self.lines):
            return len(self.lines) - 1, len(self.lines[-1])
        line = max(0, position.line)
        return line, index_at(self.lines[line], position.character, encoding)

    def _note(self, version: int, shift: LineShift) -> None:
        if shift.end - shift.start != shift.count:
            self.shifts.append((version, shift))


def _shifted(line: int, shift: LineShift) -> int:
    if line >= shift.end:
        return line + shift.count - (shift.end - shift.start)
    if line > shift.start:
        return min(line, shift.start + max(0, shift.count - 1))
    return line


def _unshifted(line: int, shift: LineShift) -> int:
    if line >= shift.start + shift.count:
        return line - shift.count + (shift.end - shift.start)
    if line > shift.start:
        return min(line, max(shift.start, shift.end - 1))
    return line
