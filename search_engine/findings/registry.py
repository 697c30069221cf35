"""All checks, in the order of their codes."""

from __future__ import annotations

from search_engine.findings._base import Check
from search_engine.findings.atomic_contention import AtomicContention
from search_engine.findings.dead_iterations import DeadIterations
from search_engine.findings.grid_too_small import GridTooSmall
from search_engine.findings.launch_overhead import LaunchOverhead
from search_engine.findings.masked_lanes import MaskedLanes
from search_engine.findings.programs_too_small import ProgramsTooSmall
from search_engine.findings.recompile_trigger import RecompileTrigger
from search_engine.findings.repeated_read import RepeatedRead
from search_engine.findings.serial_work import SerialWork
from search_engine.findings.unmasked_access import UnmaskedAccess
from search_engine.findings.wave_quantization import WaveQuantization

CHECKS: tuple[Check, ...] = (
    GridTooSmall(),
    ProgramsTooSmall(),
    MaskedLanes(),
    WaveQuantization(),
    RepeatedRead(),
    DeadIterations(),
    SerialWork(),
    AtomicContention(),
    RecompileTrigger(),
    LaunchOverhead(),
    UnmaskedAccess(),
)
