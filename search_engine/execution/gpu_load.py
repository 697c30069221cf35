"""Is a card idle? Asked of ``nvidia-smi`` before anything is timed."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from dataclasses import dataclass

_FIELDS = "uuid,utilization.gpu,memory.used,memory.total"
_SECONDS = 10.0
_IDLE_PERCENT = 5


@dataclass(frozen=True, slots=True)
class GpuLoad:
    """What a card is doing. Memory is in bytes; ``processes`` are ids of its compute processes."""

    uuid: str
    utilization_percent: int
    used_bytes: int
    total_bytes: int
    processes: tuple[int, ...]

    @property
    def free_bytes(self) -> int:
        """Memory that nobody holds."""
        return self.total_bytes - self.used_bytes

    def busy(self, own_processes: frozenset[int] = frozenset()) -> bool:
        """True if a stranger computes on the card now."""
        strangers = set(self.processes) - own_processes
        return bool(strangers) and self.utilization_percent > _IDLE_PERCENT


async def gpu_load(uuid: str) -> GpuLoad | None:
    """The load of a card; None if ``nvidia-smi`` is absent, fails, or does not know the card.

    ``uuid`` may lack the prefix ``GPU-``, as torch reports it.
    """
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return None
    cards = await _ask(tool, f"--query-gpu={_FIELDS}")
    processes = await _ask(tool, "--query-compute-apps=gpu_uuid,pid")
    return None if cards is None else parse(uuid, cards, processes or "")


def parse(uuid: str, cards: str, processes: str) -> GpuLoad | None:
    """Read the two tables that ``nvidia-smi`` prints with ``--format=csv,noheader,nounits``."""
    wanted = _bare(uuid)
    ids = tuple(
        int(row[1])
        for row in _rows(processes)
        if len(row) == 2 and _bare(row[0]) == wanted and row[1].isdigit()
    )
    for row in _rows(cards):
        if len(row) == 4 and _bare(row[0]) == wanted and row[2].isdigit() and row[3].isdigit():
            mebibyte = 1024**2
            utilization = int(row[1]) if row[1].isdigit() else 0
            return GpuLoad(uuid, utilization, int(row[2]) * mebibyte, int(row[3]) * mebibyte, ids)
    return None


def _rows(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split(",")] for line in table.splitlines() if line]


def _bare(uuid: str) -> str:
    return uuid.removeprefix("GPU-").lower()


async def _ask(tool: str, query: str) -> str | None:
    try:
        process = await asyncio.create_subprocess_exec(
            tool,
            query,
            "--format=csv,noheader,nounits",
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except OSError:
        return None
    try:
        output, _ = await asyncio.wait_for(process.communicate(), _SECONDS)
    except asyncio.TimeoutError:  # noqa: UP041
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        return None
    return output.decode(errors="replace") if process.returncode == 0 else None
