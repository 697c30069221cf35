"""``window/workDoneProgress/cancel``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

if TYPE_CHECKING:
    from kernel_lsp.server import KernelServer

METHOD = types.WINDOW_WORK_DONE_PROGRESS_CANCEL


def handle(ls: KernelServer, params: types.WorkDoneProgressCancelParams) -> None:
    """Cancel the run of a token; unknown and ended ones are ignored."""
    ls.session.jobs.cancel(str(params.token).removeprefix("kernelLsp/"))
