"""Which workspaces may run their code. Unknown ones may not."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from kernel_lsp.settings import Settings

log = logging.getLogger(__name__)


@dataclass(slots=True)
class TrustStore:
    """Roots that the user has trusted, kept in one JSON file of the state folder."""

    path: Path
    client: bool | None = None
    """What the editor says about its whole window; None if it says nothing."""
    _roots: set[str] = field(default_factory=set[str])

    @classmethod
    def load(cls, path: Path) -> TrustStore:
        """Read the file; a missing or broken one means that nothing is trusted."""
        try:
            data: Any = json.loads(path.read_text(encoding="utf-8"))
            roots = list(cast("list[Any]", data["roots"]))
        except (OSError, ValueError, KeyError, TypeError):
            roots = []
        return cls(path, None, {str(root) for root in roots})

    def trusted(self, root: str, settings: Settings) -> bool:
        """The setting decides first, then the editor, then what the user once granted here."""
        if settings.trust != "ask":
            return settings.trust == "always"
        if self.client is not None:
            return self.client
        return root in self._roots

    def grant(self, root: str) -> None:
        """Remember that the user trusts ``root``, now and in later sessions."""
        self._roots.add(root)
        text = json.dumps({"roots": sorted(self._roots)}, indent=1)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            temporary = self.path.with_suffix(".tmp")
            temporary.write_text(text, encoding="utf-8")
            temporary.replace(self.path)
        except OSError as error:
            log.warning("trust is kept for this session only: %s", error)
