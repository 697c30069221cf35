"""Polite ends: SIGTERM and SIGHUP give a process the time to remove what it made."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable

_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


def on_termination(end: Callable[[], object]) -> None:
    """Call ``end`` on the first SIGTERM or SIGHUP that the running loop's process gets.

    Further ones change nothing: a closing terminal sends several. A SIGHUP that is ignored, as
    under nohup, stays ignored. Must be called in the main thread.
    """
    loop = asyncio.get_running_loop()
    ended = False

    def once() -> None:
        nonlocal ended
        if not ended:
            ended = True
            end()

    for number in _SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, once)
