"""All checks, in the order of their codes."""

from __future__ import annotations

from search_engine.findings._base import Check
from search_engine.findings.alignment_lost import AlignmentLost
from search_engine.findings.atomic_cas_loop import AtomicCasLoop
from search_engine.findings.atomic_contention import AtomicContention
from search_engine.findings.bank_conflict import BankConflict
from search_engine.findings.dead_iterations import DeadIterations
from search_engine.findings.divergent_constant_access import DivergentConstantAccess
from search_engine.findings.fp64_in_fp32 import Fp64InFp32
from search_engine.findings.grid_too_small import GridTooSmall
from search_engine.findings.integer_division import IntegerDivision
from search_engine.findings.launch_overhead import LaunchOverhead
from search_engine.findings.layout_conversion import LayoutConversionCheck
from search_engine.findings.local_array import LocalArray
from search_engine.findings.low_occupancy import LowOccupancy
from search_engine.findings.masked_lanes import MaskedLanes
from search_engine.findings.narrow_access import NarrowAccess
from search_engine.findings.no_pipelining import NoPipelining
from search_engine.findings.programs_too_small import ProgramsTooSmall
from search_engine.findings.recompile_trigger import RecompileTrigger
from search_engine.findings.register_spill import RegisterSpill
from search_engine.findings.repeated_read import RepeatedRead
from search_engine.findings.serial_work import SerialWork
from search_engine.findings.slow_compile import SlowCompile
from search_engine.findings.tensor_core_missed import TensorCoreMissed
from search_engine.findings.uncoalesced_access import UncoalescedAccess
from search_engine.findings.unmasked_access import UnmaskedAccess
from search_engine.findings.wave_quantization import WaveQuantization

CHECKS: tuple[Check, ...] = (
    RegisterSpill(),
    LocalArray(),
    LowOccupancy(),
    NarrowAccess(),
    AlignmentLost(),
    UncoalescedAccess(),
    BankConflict(),
    TensorCoreMissed(),
    NoPipelining(),
    Fp64InFp32(),
    IntegerDivision(),
    LayoutConversionCheck(),
    AtomicCasLoop(),
    DivergentConstantAccess(),
    SlowCompile(),
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
