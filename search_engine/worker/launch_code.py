"""What the compiler made of one launch, from everything that Triton keeps of a compiled kernel."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

from search_engine.domain.code import LaunchCode, MachineOperation, SharedAccess
from search_engine.worker import machine_code
from search_engine.worker.amd_rows import amd_rows
from search_engine.worker.arguments import kernel_arguments
from search_engine.worker.code_places import UserText, located_rows
from search_engine.worker.code_rows import CodeRow, line_codes
from search_engine.worker.compile import facts_of
from search_engine.worker.disassembler import DisassemblerError, disassemble
from search_engine.worker.ir_conversions import conversions
from search_engine.worker.ir_dots import dots, encodings
from search_engine.worker.ir_loops import pipelined_loops
from search_engine.worker.ir_text import IrOperation, read_module
from search_engine.worker.machine_code import CodeFacts
from search_engine.worker.sass_rows import nvidia_rows
from search_engine.worker.shared_banks import shared_accesses


@dataclasses.dataclass(frozen=True, slots=True)
class KernelLaunch:
    """A compiled kernel and where it is launched; ``values`` are its numbers by parameter."""

    compiled: Any
    grid: tuple[int, int, int]
    line: int | None
    values: Sequence[str | None]
    assumed: bool = False
    notes: tuple[str, ...] = ()


def launch_code(
    launch: KernelLaunch, text: str, user: UserText
) -> tuple[LaunchCode, tuple[CodeRow, ...]]:
    """The launch by source line, and the rows of its machine code.

    ``text`` is the version's. Without a disassembler there are no rows, and a note says what to
    install. Stage times are not filled in.
    """
    compiled = launch.compiled
    machine = _machine(compiled, user)
    lowered, original = _operations(compiled, "ttgir"), _operations(compiled, "ttir")
    lines = line_codes(machine.rows)
    facts = facts_of(compiled, launch.grid, machine.facts)
    code = LaunchCode(
        facts=facts,
        line=launch.line,
        arguments=kernel_arguments(compiled.src, launch.values),
        lines=lines,
        dots=dots(lowered, original, encodings(_text(compiled, "ttgir")), user),
        conversions=conversions(lowered, lines, user),
        loops=pipelined_loops(lowered, original, facts.stages, text, user),
        assumed=launch.assumed,
        notes=(*machine.notes, *launch.notes),
        shared=_shared(_text(compiled, "ptx"), user),
    )
    return code, machine.rows


@functools.lru_cache(maxsize=64)
def _shared(ptx: str, user: UserText) -> tuple[SharedAccess, ...]:
    return shared_accesses(ptx, located_rows(ptx, user)) if ptx else ()


@dataclasses.dataclass(frozen=True, slots=True)
class _Machine:
    """The machine code of one kernel, as far as it could be read."""

    facts: CodeFacts
    rows: tuple[CodeRow, ...] = ()
    notes: tuple[str, ...] = ()


def _machine(compiled: Any, user: UserText) -> _Machine:
    if "cubin" not in compiled.asm:
        assembly = _text(compiled, "amdgcn")
        rows = _with_own_atomics(compiled, amd_rows(assembly, user), user)
        return _Machine(machine_code.amd(assembly), rows)
    cubin = compiled.asm["cubin"]
    registers = machine_code.registers_of_cubin(cubin)
    try:
        listing = disassemble(cubin)
    except DisassemblerError as error:
        return _Machine(CodeFacts(registers, 0, 0, 0, 0), notes=(str(error),))
    rows = nvidia_rows(listing, _text(compiled, "ptx"), user)
    facts = machine_code.from_sass(listing, registers)
    return _Machine(facts, _with_own_atomics(compiled, rows, user))


def _with_own_atomics(
    compiled: Any, rows: tuple[CodeRow, ...], user: UserText
) -> tuple[CodeRow, ...]:
    """A compare and swap that the user wrote stands for itself, not for another atomic.

    One that the compiler made begins with a load of the old value, which is part of it.
    """
    cas = {row.line for row in rows if row.operation is MachineOperation.ATOMIC_CAS}
    if not cas:
        return rows
    written: dict[str, set[int | None]] = {}
    for item in _operations(compiled, "ttgir"):
        written.setdefault(item.name.rpartition(".")[2], set()).add(user.line(item.chain))
    own = written.get("atomic_cas", set())
    made = cas - own - written.get("load", set()) - written.get("buffer_load", set())
    return tuple(_with_own_atomic(row, own, made) for row in rows)


def _with_own_atomic(row: CodeRow, own: set[int | None], made: set[int | None]) -> CodeRow:
    if row.operation is MachineOperation.ATOMIC_CAS and row.line in own:
        return dataclasses.replace(row, operation=MachineOperation.ATOMIC)
    if row.operation is MachineOperation.GLOBAL_LOAD and row.line in made:
        return dataclasses.replace(row, operation=MachineOperation.OTHER, width_bytes=0)
    return row


def _text(compiled: Any, stage: str) -> str:
    """The text of a stage; empty where Triton was told to keep binaries only."""
    return str(compiled.asm.get(stage) or "")


def _operations(compiled: Any, stage: str) -> tuple[IrOperation, ...]:
    return _read(_text(compiled, stage))


@functools.lru_cache(maxsize=64)
def _read(text: str) -> tuple[IrOperation, ...]:
    return read_module(text)
