"""Where the help page of a finding is."""

from __future__ import annotations

import functools
from pathlib import Path

PUBLIC_URL: str | None = None
"""The published page of findings; None: the pages that are installed here are opened."""

_PACKAGE = Path(__file__).parent
_PAGES = (_PACKAGE / "findings.md", _PACKAGE.parent / "docs" / "findings.md")
"""In a wheel, and in a checkout."""


def help_page(code: str, base: str | None = None) -> str | None:
    """URL of the page of one code; ``base`` is the user's own page. None if there is none."""
    url = base or PUBLIC_URL or _installed()
    return f"{url}#{code.lower()}" if url is not None else None


@functools.cache
def _installed() -> str | None:
    page = next((page for page in _PAGES if page.is_file()), None)
    return page.as_uri() if page is not None else None
