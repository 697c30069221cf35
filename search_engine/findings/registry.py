"""All checks, in the order of their codes."""

from __future__ import annotations

from search_engine.findings._base import Check

CHECKS: tuple[Check, ...] = ()
