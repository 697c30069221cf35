"""What was found in one file, as every format of the output needs it."""

from __future__ import annotations

import dataclasses
import functools
import re
from dataclasses import dataclass, field

from kernel_lsp.subcommands._kernel_files import KernelFile
from search_engine.domain.facts_message import StaticFindings, UnitFindings
from search_engine.domain.finding import Finding
from search_engine.domain.summary import KernelSummary

_COMMENT = re.compile(rb"#[^\n]*")
_NO_WORD = re.compile(rb"[\s(),]+")
"""What a formatter adds and removes."""


@dataclass(slots=True)
class FileFindings:
    """Findings of one file, collected as answers come."""

    file: KernelFile
    targets: tuple[str, ...] = ()
    """In the order in which they were asked for."""
    static: tuple[Finding, ...] = ()
    units: list[UnitFindings] = field(default_factory=list[UnitFindings])

    def add(self, answer: StaticFindings | UnitFindings) -> None:
        """Take one answer in."""
        if isinstance(answer, StaticFindings):
            self.static = answer.findings
        else:
            self.units.append(answer)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings by line, with the path as the user wrote it."""
        found = [*self.static, *(item for unit in self.units for item in unit.findings)]
        order = {name: index for index, name in enumerate(self.targets)}
        found.sort(
            key=lambda item: (item.line, item.start, item.code, order.get(item.target or "", 0))
        )
        return tuple(dataclasses.replace(item, path=self.file.shown) for item in found)

    @property
    def summaries(self) -> tuple[KernelSummary, ...]:
        """Summaries by the place of the kernel in the file, then in the order of targets."""
        places = {
            f"def {name.rpartition('.')[2]}(": name for name in {u.kernel for u in self.units}
        }
        order = {name: self.file.text.find(text) for text, name in places.items()}
        targets = {name: index for index, name in enumerate(self.targets)}
        found = [unit.summary for unit in self.units if unit.summary is not None]
        found.sort(key=lambda item: (order[item.kernel], targets.get(item.target, 0)))
        return tuple(found)

    def notes(self, kernel: str, target: str) -> tuple[str, ...]:
        """Sentences on what is uncertain about one kernel for one target."""
        return next((u.notes for u in self.units if (u.kernel, u.target) == (kernel, target)), ())

    def column(self, offset: int) -> int:
        """1-based column, in characters, of a byte of the text."""
        data = _encoded(self.file.text)
        start = data.rfind(b"\n", 0, offset) + 1
        return len(data[start:offset].decode(errors="replace")) + 1

    def fingerprint(self, finding: Finding) -> str:
        """Code, kernel and statement: what stays when lines move and code is formatted."""
        text = _encoded(self.file.text)[finding.start : finding.end]
        text = _COMMENT.sub(b"", text)
        if finding.end_line > finding.line:  # of a loop the header alone: its body may change
            text = re.split(rb":[ \t]*\n", text, maxsplit=1)[0]
        words = _NO_WORD.sub(b"", text).rstrip(b":").decode(errors="replace")
        return "|".join((finding.code, finding.kernel or "", words))


@functools.lru_cache(8)
def _encoded(text: str) -> bytes:
    return text.encode(errors="surrogatepass")
