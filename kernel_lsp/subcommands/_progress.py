"""A live progress line on a terminal; plain lines at state changes elsewhere."""

from __future__ import annotations

from types import TracebackType
from typing import Self, TextIO

from rich.console import Console
from rich.status import Status

from search_engine.domain.event import (
    BaselineMeasured,
    CandidateEvaluated,
    Finished,
    ImprovementFound,
    Progress,
    SearchEvent,
    StateChanged,
)


class ProgressLine:
    """Shows the events of one run."""

    def __init__(self, stream: TextIO) -> None:
        self._console = Console(file=stream, highlight=False)
        self._status: Status | None = None

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._status = self._console.status("starting")
            self._status.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._status is not None:
            self._status.stop()

    def update(self, event: SearchEvent) -> None:
        """Show one event."""
        match event:
            case StateChanged(detail=detail, elapsed_seconds=elapsed):
                self._line(f"[{elapsed:5.1f} s] {detail}")
            case BaselineMeasured(median_us=us, noise=noise, device=device, elapsed_seconds=at):
                self._line(f"[{at:5.1f} s] baseline {us:.1f} µs on {device}, noise {noise:.1%}")
            case ImprovementFound(verified=verified, evidence=evidence, elapsed_seconds=at):
                self._line(f"[{at:5.1f} s] {_offer(verified, evidence.speedup)}")
            case Progress(tried=tried, rejected=rejected, best=best, elapsed_seconds=at):
                gain = "no gain yet" if best is None else f"best {best.value:.2f}x"
                self._spin(f"{gain} · {tried} tried, {rejected} rejected · {at:.0f} s")
            case CandidateEvaluated() | Finished():
                pass

    def _line(self, text: str) -> None:
        self._console.print(text, markup=False)

    def _spin(self, text: str) -> None:
        if self._status is not None:
            self._status.update(text)


def _offer(verified: bool, speedup: object) -> str:
    if speedup is None:
        return "a rewrite is correct on the CPU interpreter, not timed"
    value = getattr(speedup, "value", 0.0)
    return f"{value:.2f}x {'verified' if verified else 'measured, not yet audited'}"
