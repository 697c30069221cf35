"""Compile every launch of an entry for a target, without a device, and read the machine code."""

from __future__ import annotations

import time
import traceback
import types
from typing import Any

from search_engine.domain.facts import CompileFacts, LaunchFacts
from search_engine.domain.job import CompileJob, CompileReply, Refusal, RefusalKind, Source
from search_engine.domain.workload import Case, Workload
from search_engine.worker import fake_driver, fake_torch, machine_code, stand_ins
from search_engine.worker.fake_driver import CARDS, CapturedLaunch, FakeDriver
from search_engine.worker.loader import LoadError, line_of, load, load_fresh
from search_engine.worker.machine_code import CodeFacts

_LONGEST_MESSAGE = 2000

_active: dict[str, FakeDriver] = {}
"""The fake driver of this process, by target; at most one."""


def compile_source(job: CompileJob) -> CompileReply | Refusal:
    """Run the entry once under the fake driver and report each launch.

    Refuses with COMPILE for what the compiler or a limit of the target forbids, RUNTIME for what
    the entry raises itself, WORKLOAD for inputs that cannot be built, ENVIRONMENT for a missing
    module. Raises nothing of the user's.
    """
    started = time.monotonic()
    driver = driver_for(job.target)
    if isinstance(driver, Refusal):
        return driver
    refusal = run_entry(driver, job.source, job.workload, job.workload.cases[job.case])
    if refusal is not None:
        return refusal
    launches = tuple(launch_facts(launch) for launch in driver.launches)
    for case in job.also:
        _Attempt(driver, job.source, job.workload, case, "meta").run()
    return CompileReply(CompileFacts(job.target, launches, time.monotonic() - started))


def driver_for(target: str) -> FakeDriver | Refusal:
    """The fake driver of this process, for the only target that it compiles for."""
    if target not in CARDS:
        known = ", ".join(CARDS)
        return Refusal(RefusalKind.UNSUPPORTED, f"unknown target {target}; known: {known}")
    if target not in _active:
        if _active:
            raise RuntimeError(f"this worker compiles for {next(iter(_active))} only")
        fake_torch.install(CARDS[target])
        _active[target] = fake_driver.install(CARDS[target])
    return _active[target]


def run_entry(driver: FakeDriver, source: Source, workload: Workload, case: Case) -> Refusal | None:
    """Call the entry once; its launches are then ``driver.launches``, of which there is one at
    least if no refusal is returned.

    Tensors without data are tried first; an entry that reads values gets tensors on the host.
    """
    refusal = _Attempt(driver, source, workload, case, "meta").run()
    if refusal is not None and refusal.kind is RefusalKind.RUNTIME:
        refusal = _Attempt(driver, source, workload, case, "cpu").run()
    if refusal is None and not driver.launches:
        message = f"`{source.entry}` launched no Triton kernel on this workload"
        return Refusal(RefusalKind.WORKLOAD, message)
    return refusal


def launch_facts(launch: CapturedLaunch) -> LaunchFacts:
    """Read one launch and its machine code."""
    compiled = launch.compiled
    if "cubin" in compiled.asm:
        return facts_of(compiled, launch.grid, machine_code.nvidia(compiled.asm["cubin"]))
    return facts_of(compiled, launch.grid, machine_code.amd(compiled.asm["amdgcn"]))


def facts_of(compiled: Any, grid: tuple[int, int, int], code: CodeFacts) -> LaunchFacts:
    """The facts of a compiled kernel whose machine code was read."""
    binary = compiled.asm["cubin" if "cubin" in compiled.asm else "hsaco"]
    return LaunchFacts(
        kernel=compiled.src.fn.__name__,
        grid=grid,
        warps=int(compiled.metadata.num_warps),
        stages=int(compiled.metadata.num_stages),
        constants=_constants(compiled.src),
        registers=code.registers,
        spill_bytes=code.spill_bytes,
        shared_bytes=int(compiled.metadata.shared),
        binary_hash=machine_code.binary_hash(binary),
        tensor_instructions=code.tensor_instructions,
        instructions=code.instructions,
        widest_load_bytes=code.widest_load_bytes,
    )


class _Attempt:
    """One run of the entry on stand-ins of one kind; a refusal if it fails."""

    def __init__(
        self, driver: FakeDriver, source: Source, workload: Workload, case: Case, on: str
    ) -> None:
        self._driver = driver
        self._source = source
        self._workload = workload
        self._case = case
        self._on = on
        self._refusal: Refusal | None = None

    def run(self) -> Refusal | None:
        """None if the entry returned."""
        self._driver.launches.clear()
        with self, fake_torch.cuda_as(self._on):
            stand_ins.call(self._module(), self._source, self._workload, self._case, self._on)
        return self._refusal

    def _module(self) -> types.ModuleType:
        """Tensors made by top-level code must be of this attempt's kind, so nothing is shared."""
        return load(self._source) if self._on == "meta" else load_fresh(self._source)

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> bool:
        if isinstance(error, (Exception, SystemExit)):
            self._refusal = refusal_for(error, self._source)
            return True
        return False


def refusal_for(error: BaseException, source: Source) -> Refusal:
    """What an exception of a compile attempt means, with the line in the version's text."""
    if isinstance(error, LoadError):
        return error.refusal
    chain = _chain(error)
    located = [line for line in (compiler_line(item, source) for item in chain) if line is not None]
    line = located[-1] if located else line_of(error, source)
    if type(error).__name__ == "OutOfResources":
        return Refusal(RefusalKind.COMPILE, _limit_message(error), line)
    kind = RefusalKind.COMPILE if _from_triton(error) else RefusalKind.RUNTIME
    return Refusal(kind, _message(chain), line)


def compiler_line(error: BaseException, source: Source) -> int | None:
    """0-based line of the text that a Triton CompilationError points at.

    Triton counts lines from the ``def`` of the function that it compiles, so that function's
    source is found in the text first.
    """
    number = getattr(getattr(error, "node", None), "lineno", None)
    function = getattr(error, "src", None)
    if not isinstance(function, str) or not isinstance(number, int):
        return None
    wanted = [line.strip() for line in function.rstrip().splitlines()]
    lines = [line.strip() for line in source.text.splitlines()]
    for start in range(len(lines) - len(wanted) + 1):
        if lines[start : start + len(wanted)] == wanted:
            return start + number - 1
    return None


def constant_text(value: Any) -> str:
    """Classes and functions by name, everything else as Python writes it."""
    return str(getattr(value, "__name__", None) or repr(value))


def _constants(source: Any) -> tuple[tuple[str, str], ...]:
    """Values of the parameters declared ``tl.constexpr``, in order."""
    values: list[tuple[str, str]] = []
    for path, value in sorted(source.constants.items()):
        parameter = source.fn.params[path[0]]
        if len(path) == 1 and parameter.is_constexpr:
            values.append((parameter.name, constant_text(value)))
    return tuple(values)


def _chain(error: BaseException) -> list[BaseException]:
    """An exception and its causes, outermost first."""
    chain = [error]
    while chain[-1].__cause__ is not None and chain[-1].__cause__ not in chain:
        chain.append(chain[-1].__cause__)
    return chain


def _from_triton(error: BaseException) -> bool:
    frames = traceback.extract_tb(error.__traceback__)
    return any("/triton/" in frame.filename for frame in frames)


def _message(chain: list[BaseException]) -> str:
    """The innermost text: the outer ones repeat it around an excerpt of the source."""
    for error in reversed(chain):
        text = str(getattr(error, "error_message", None) or error).strip()
        if text:
            return f"{type(error).__name__}: {text[:_LONGEST_MESSAGE]}"
    return type(chain[0]).__name__


def _limit_message(error: Any) -> str:
    units = {"shared memory": "bytes of shared memory", "tensor memory": "tensor memory columns"}
    what = units.get(error.name, error.name)
    return (
        f"needs {error.required} {what}, the target allows {error.limit}: "
        "reduce block sizes or num_stages"
    )
