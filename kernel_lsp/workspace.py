"""Folders of the workspace and the settings of each."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kernel_lsp.settings import Settings, merge, parse, project_layer, user_layer

log = logging.getLogger(__name__)

MARKERS = ("pyproject.toml", "setup.py", ".git")


@dataclass(slots=True)
class Workspace:
    """Folders that the editor opened, and one settings value for each root."""

    user_file: Path
    folders: set[Path] = field(default_factory=set[Path])
    fallback: dict[str, Any] = field(default_factory=dict[str, Any])
    """Settings that the editor pushed for the whole window."""
    on_problems: Callable[[str], None] = lambda _: None
    """Told what was refused and why; each problem once, as an editor shows it."""
    _told: set[str] = field(default_factory=set[str])
    _editor: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    _parsed: dict[str, Settings] = field(default_factory=dict[str, Settings])
    _roots: dict[str, str] = field(default_factory=dict[str, str])

    def root_of(self, path: str) -> str:
        """The deepest workspace folder above a file, else the nearest project, else its folder."""
        if path not in self._roots:
            self._roots[path] = str(self._find_root(Path(path)))
        return self._roots[path]

    def settings(self, root: str) -> Settings:
        """Settings of a root; parsed at the first call after a change."""
        if root not in self._parsed:
            project, refused = project_layer(Path(root))
            editor = self._editor.get(root, {})
            layers = (user_layer(self.user_file), project, self.fallback, editor)
            self._parsed[root], problems = parse(merge(*layers))
            self._tell((*refused, *problems))
        return self._parsed[root]

    def known(self, root: str) -> bool:
        """True if the editor's settings of that root have arrived."""
        return root in self._editor

    def set_editor(self, root: str, data: Mapping[str, Any]) -> None:
        """The editor's settings of one root."""
        self._editor[root] = dict(data)
        self._parsed.pop(root, None)

    def set_fallback(self, data: Mapping[str, Any]) -> None:
        """The editor's settings where it does not tell them per root."""
        self.fallback = dict(data)
        self._parsed.clear()

    def forget_settings(self) -> None:
        """Read everything anew at the next use."""
        self._editor.clear()
        self._parsed.clear()

    def change_folders(self, added: set[Path], removed: set[Path]) -> None:
        """The editor's folders have changed."""
        self.folders = (self.folders | added) - removed
        self._roots.clear()

    def _tell(self, problems: tuple[str, ...]) -> None:
        new = [problem for problem in problems if problem not in self._told]
        self._told.update(new)
        for problem in new:
            log.warning("%s", problem)
        if new:
            self.on_problems(". ".join(new))

    def _find_root(self, path: Path) -> Path:
        above = path.parents
        for folder in above:
            if folder in self.folders:
                return folder
        for folder in above:
            if any((folder / marker).exists() for marker in MARKERS):
                return folder
        return path.parent
