"""The environment that a worker gets: the server's own, without secrets."""

from __future__ import annotations

from collections.abc import Mapping

_SECRET = ("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL")

_OWN = frozenset(
    {"PYTHONHOME", "PYTHONSTARTUP", "PYTHONINSPECT", "PYTHONBREAKPOINT", "PYTHONSAFEPATH"}
)
"""Belong to the server's interpreter, or would change how the worker starts."""


def scrubbed(environment: Mapping[str, str]) -> dict[str, str]:
    """Variables whose names do not hint at a secret and do not steer another interpreter."""
    return {name: value for name, value in environment.items() if _harmless(name)}


def _harmless(name: str) -> bool:
    upper = name.upper()
    return upper not in _OWN and not any(word in upper for word in _SECRET)
