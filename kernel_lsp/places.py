"""Folders of this program on the user's machine, per the XDG base directory specification."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Places:
    """``state`` holds archive, logs, trust, diffs and listings; ``config`` the user's settings.

    ``cache`` holds what can be made again.
    """

    state: Path
    config: Path
    cache: Path

    @property
    def archive(self) -> Path:
        """The user's archive of runs."""
        return self.state / "archive.sqlite"

    @property
    def log(self) -> Path:
        """The server's log file."""
        return self.state / "log" / "server.log"

    @property
    def trust(self) -> Path:
        """Trusted workspaces."""
        return self.state / "trust.json"

    @property
    def diffs(self) -> Path:
        """Diffs written for editors that cannot show a candidate otherwise."""
        return self.state / "diffs"

    @property
    def listings(self) -> Path:
        """Machine code written for editors."""
        return self.state / "listings"

    @property
    def user_settings(self) -> Path:
        """The user's settings file."""
        return self.config / "config.toml"


def find_places(environment: Mapping[str, str] = os.environ) -> Places:
    """Folders for this user; they are made when first written to."""
    home = Path(environment.get("HOME") or Path.home())
    state = Path(environment.get("XDG_STATE_HOME") or home / ".local" / "state")
    config = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
    cache = Path(environment.get("XDG_CACHE_HOME") or home / ".cache")
    return Places(state / "kernel-lsp", config / "kernel-lsp", cache / "kernel-lsp")


def find_devices(dev: Path = Path("/dev")) -> bool:
    """True if the machine has a GPU's device file. Looking does not touch the device."""
    return any(any(dev.glob(name)) for name in ("nvidia[0-9]*", "kfd", "dxg"))
