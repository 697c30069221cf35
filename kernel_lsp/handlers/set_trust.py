"""``kernelLsp/setTrust {trusted}``: the editor's own workspace trust has changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernel_lsp.server import KernelServer

METHOD = "kernelLsp/setTrust"


def handle(ls: KernelServer, params: Any) -> None:
    """Take it for the whole window."""
    trusted = params.get("trusted") if isinstance(params, dict) else getattr(params, "trusted", 0)  # pyright: ignore
    if isinstance(trusted, bool):
        ls.session.trust.client = trusted
        ls.session.publish_all()
