"""Compile every launch of an entry for a target, without a device, and read the machine code."""

from __future__ import annotations

import time
import traceback
import types
from typing import Any

from search_engine.domain.facts import CompileFacts, LaunchFacts
from search_engine.domain.job import CompileJob, CompileReply, Refusal, RefusalKind, Source
from search_engine.domain.workload import Case
from search_engine.worker import fake_driver, fake_torch, machine_code, stand_ins
from search_engine.worker.fake_driver import CARDS, CapturedLaunch, FakeDriver
from search_engine.worker.loader import LoadError, line_of, load, load_fresh

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
    if job.target not in CARDS:
        known = ", ".join(CARDS)
        return Refusal(RefusalKind.UNSUPPORTED, f"unknown target {job.target}; known: {known}")
    driver = _driver(job.target)
    refusal = _Attempt(job, driver, "meta").run()
    if refusal is not None and refusal.kind is RefusalKind.RUNTIME:
        refusal = _Attempt(job, driver, "cpu").run()
    if refusal is not None:
        return refusal
    if not driver.launches:
        message = f"`{job.source.entry}` launched no Triton kernel on this workload"
        return Refusal(RefusalKind.WORKLOAD, message)
    launches = tuple(launch_facts(launch) for launch in driver.launches)
    for case in job.also:
        _Attempt(job, driver, "meta", case).run()
    return CompileReply(CompileFacts(job.target, launches, time.monotonic() - started))


def launch_facts(launch: CapturedLaunch) -> LaunchFacts:
    """Read one launch and its machine code."""
    compiled = launch.compiled
    if "cubin" in compiled.asm:
        binary = compiled.asm["cubin"]
        code = machine_code.nvidia(binary)
    else:
        binary = compiled.asm["hsaco"]
        code = machine_code.amd(compiled.asm["amdgcn"])
    return LaunchFacts(
        kernel=compiled.src.fn.__name__,
        grid=launch.grid,
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
        self, job: CompileJob, driver: FakeDriver, on: str, case: Case | None = None
    ) -> None:
        self._job = job
        self._driver = driver
        self._on = on
        self._case = case if case is not None else job.workload.cases[job.case]
        self._refusal: Refusal | None = None

    def run(self) -> Refusal | None:
        """None if the entry returned."""
        self._driver.launches.clear()
        with self, fake_torch.cuda_as(self._on):
            module = self._module()
            stand_ins.call(module, self._job.source, self._job.workload, self._case, self._on)
        return self._refusal

    def _module(self) -> types.ModuleType:
        """Tensors made by top-level code must be of this attempt's kind, so nothing is shared."""
        return load(self._job.source) if self._on == "meta" else load_fresh(self._job.source)

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> bool:
        if isinstance(error, (Exception, SystemExit)):
            self._refusal = refusal_for(error, self._job.source)
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


def _driver(target: str) -> FakeDriver:
    if target not in _active:
        if _active:
            raise RuntimeError(f"this worker compiles for {next(iter(_active))} only")
        fake_torch.install(CARDS[target])
        _active[target] = fake_driver.install(CARDS[target])
    return _active[target]


def _constants(source: Any) -> tuple[tuple[str, str], ...]:
    """Values of the parameters declared ``tl.constexpr``, in order."""
    values: list[tuple[str, str]] = []
    for path, value in sorted(source.constants.items()):
        parameter = source.fn.params[path[0]]
        if len(path) == 1 and parameter.is_constexpr:
            values.append((parameter.name, _constant_text(value)))
    return tuple(values)


def _constant_text(value: Any) -> str:
    """Classes and functions by name, everything else as Python writes it."""
    return str(getattr(value, "__name__", None) or repr(value))


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
