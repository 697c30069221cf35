"""The one place where edits become a candidate's text: new lines end as the file's lines do.

Rules and configurations write ``\\n``. In a file with ``\\r\\n`` that would leave mixed line ends,
and a diff that shows more than the rewrite.
"""

from __future__ import annotations

import difflib

from search_engine.domain.candidate import TextEdit, apply_edits

_CRLF = "\r\n"


def edited(text: str, edits: tuple[TextEdit, ...]) -> str:
    """As ``apply_edits``; lines that ``text`` does not have end like most lines of ``text``.

    Lines that ``text`` has keep their ends, also where they are mixed. Raises ValueError if two
    edits overlap.
    """
    result = apply_edits(text, edits)
    with_cr, total = text.count(_CRLF), text.count("\n")
    if not with_cr:
        return result.replace(_CRLF, "\n")
    if with_cr == total:
        return result.replace(_CRLF, "\n").replace("\n", _CRLF)
    return _mixed(text, result, _CRLF if 2 * with_cr > total else "\n")


def _mixed(text: str, result: str, usual: str) -> str:
    old, new = text.split("\n"), result.split("\n")
    bare_old, bare_new = [_bare(line) for line in old], [_bare(line) for line in new]
    ends = [usual.removesuffix("\n")] * (len(new) - 1) + [""]
    matcher = difflib.SequenceMatcher(None, bare_old, bare_new, autojunk=False)
    for before, after, count in matcher.get_matching_blocks():
        for offset in range(count):
            here = old[before + offset]
            ends[after + offset] = here[len(_bare(here)) :]
    return "\n".join(line + end for line, end in zip(bare_new, ends, strict=True))


def _bare(line: str) -> str:
    return line.removesuffix("\r")
