"""All targets, and look-ups by name and by CUDA compute capability."""

from __future__ import annotations

from search_engine.domain.target import Target
from search_engine.targets import (
    amd_gfx942,
    amd_gfx950,
    nvidia_sm80,
    nvidia_sm89,
    nvidia_sm90,
    nvidia_sm100,
)

TARGETS: tuple[Target, ...] = (
    nvidia_sm80.TARGET,
    nvidia_sm89.TARGET,
    nvidia_sm90.TARGET,
    nvidia_sm100.TARGET,
    amd_gfx942.TARGET,
    amd_gfx950.TARGET,
)


class UnknownTargetError(KeyError):
    """No target of that name; the message lists the names that exist."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        names = ", ".join(target.name for target in TARGETS)
        return f"unknown target {self.name!r}; known targets are {names}"


def target_named(name: str) -> Target:
    """The target called ``name`` (``sm_90``, ``gfx942``). Raises UnknownTargetError."""
    for target in TARGETS:
        if target.name == name:
            return target
    raise UnknownTargetError(name)


def target_of_capability(major: int, minor: int) -> Target:
    """The NVIDIA target of a compute capability. Raises UnknownTargetError."""
    return target_named(f"sm_{major}{minor}")
