"""Front ends by file suffix. A new language is one file and one line here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath
from typing import TypeAlias

from search_engine.domain.kernel import Module
from search_engine.frontends import triton

Frontend: TypeAlias = Callable[[str, str], Module]
"""``(text, path) -> Module``; never raises on broken text."""

FRONTENDS: tuple[tuple[str, Frontend], ...] = ((".py", triton.parse_module),)


def frontend_for(path: str) -> Frontend | None:
    """The front end for a file, or None if its kind is not supported."""
    suffix = PurePath(path).suffix.lower()
    return next((frontend for known, frontend in FRONTENDS if known == suffix), None)
