"""Compile a launch that was inferred from the text, and correct guesses that do not compile.

The first attempt is the launch as it was inferred. If the compiler refuses it, its message names
what is wrong, and ``assumed_retry`` makes launches that answer it; these are tried in the order
of their promise, a small number of them in all. Only guesses are changed, nothing that the launch
site or a configuration writes.
"""

from __future__ import annotations

import ast
import heapq
import types
from dataclasses import dataclass
from typing import Any

from search_engine.domain.job import AssumedLaunch
from search_engine.worker.assumed_blame import Blame, blame
from search_engine.worker.assumed_retry import alternatives, identity
from search_engine.worker.attempt import Attempt
from search_engine.worker.fake_driver import FakeDriver

_MOST_ATTEMPTS = 16
"""Attempts that fail do so before machine code is made, at some 20 ms each."""
_STUCK = 2
"""Cost of an answer after which the compiler stops where it stopped before, or earlier."""


class AssumptionError(Exception):
    """A launch that cannot be what Triton is launched with: its message says why."""


@dataclass(frozen=True, slots=True)
class Settled:
    """Triton's compiled kernel and the launch that it was compiled for, with its notes."""

    compiled: Any
    launch: AssumedLaunch
    attempts: int


def compile_assumed(module: types.ModuleType, launch: AssumedLaunch, driver: FakeDriver) -> Any:
    """Triton's compiled kernel of an inferred launch; see ``settle``."""
    return settle(module, launch, driver).compiled


def settle(module: types.ModuleType, launch: AssumedLaunch, driver: FakeDriver) -> Settled:
    """Compile the launch, or the first correction of it that compiles, for the driver's target.

    Raises what the compiler raised on the launch as it was given if none compiles,
    AssumptionError if the launch does not fit the kernel.
    """
    function = jit_function(module, launch.kernel)
    constants = frozenset(parameter.name for parameter in function.params if parameter.is_constexpr)
    search = _Search(launch)
    first: BaseException | None = None
    while (attempt := search.next()) is not None:
        with Attempt() as outcome:
            compiled = _compile(function, module, attempt.launch, driver)
            return Settled(compiled, attempt.launch, search.tried)
        error = outcome.error
        assert error is not None
        if isinstance(error, AssumptionError):
            raise error
        first = first or error
        found = blame(error, function)
        made = alternatives(attempt.launch, error, found, constants)
        search.add(attempt, found, made)
    assert first is not None
    raise first


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A launch to try. ``line`` and ``message`` are those of the failure that it answers."""

    launch: AssumedLaunch
    cost: int = 0
    line: int = 0
    message: str = ""


class _Search:
    """Launches to try, cheapest first: the best answer to each message costs nothing."""

    def __init__(self, launch: AssumedLaunch) -> None:
        self._heap: list[tuple[int, int, _Candidate]] = [(0, 0, _Candidate(launch))]
        self._known = {identity(launch)}
        self._added = 0
        self.tried = 0

    def next(self) -> _Candidate | None:
        """The next launch; None if there is none or enough were tried."""
        if not self._heap or self.tried >= _MOST_ATTEMPTS:
            return None
        self.tried += 1
        return heapq.heappop(self._heap)[2]

    def add(self, failed: _Candidate, found: Blame, made: list[AssumedLaunch]) -> None:
        """Remember the answers to a failure; one that got no further than before costs more."""
        stuck = failed.line > found.line or (failed.line, failed.message) == (
            found.line, found.message,
        )  # fmt: skip
        for rank, launch in enumerate(made):
            if identity(launch) in self._known:
                continue
            self._known.add(identity(launch))
            self._added -= 1  # of equal ones the newest first: the path that was just taken
            cost = failed.cost + rank + (_STUCK if stuck else 0)
            candidate = _Candidate(launch, cost, found.line, found.message)
            heapq.heappush(self._heap, (cost, self._added, candidate))


def jit_function(module: types.ModuleType, name: str) -> Any:
    """The JITFunction of a kernel by qualified name, out of whatever wraps it.

    Raises AssumptionError if the module has no such kernel.
    """
    import triton
    from triton.runtime.jit import JITFunction

    found: Any = module.__dict__.get(name)  # extracted modules name nested kernels so
    if found is None:
        found = module
        for part in name.split("."):
            found = getattr(found, part, None)
    while found is not None and not isinstance(found, JITFunction) and hasattr(found, "fn"):
        found = found.fn
    if isinstance(found, JITFunction):
        return found
    if isinstance(found, types.FunctionType):  # made a kernel elsewhere: `k = triton.jit(f)`
        return triton.jit(found)
    raise AssumptionError(f"`{name}` is no Triton kernel of module `{module.__name__}`")


def _compile(
    function: Any, module: types.ModuleType, launch: AssumedLaunch, driver: FakeDriver
) -> Any:
    import triton
    from triton.compiler import ASTSource
    from triton.compiler.compiler import make_backend

    target = driver.get_current_target()
    backend = make_backend(target)
    given = {argument.name: argument for argument in launch.arguments}
    if set(given) != set(function.arg_names):
        raise AssumptionError(f"the parameters of `{launch.kernel}` are not those of the launch")
    signature: dict[str, str] = {}
    constants: dict[tuple[int, ...], Any] = {}
    attributes: dict[tuple[int, ...], Any] = {}
    for index, parameter in enumerate(function.params):
        argument = given[parameter.name]
        signature[parameter.name] = argument.dtype
        if argument.dtype == "constexpr":
            constants[(index,)] = _constant(argument.value, module)
        elif argument.divisible_by_16 and not parameter.do_not_specialize:
            attributes[(index,)] = backend.parse_attr("D")
        if driver.card.backend == "hip" and argument.dtype.startswith("*"):
            # The JIT marks every tensor below 2 GiB so, which most are: buffer instructions.
            attributes[(index,)] = [*attributes.get((index,), []), ["tt.pointer_range", 32]]
    source: Any = ASTSource(function, signature, constants, attrs=attributes)
    options = _options(backend, launch, driver.card.backend)
    compiled = triton.compile(source, target=target, options=options)
    compiled._init_handles()  # checks shared memory and threads against the card
    return compiled


_VENDOR_OPTIONS = {
    "waves_per_eu": "hip", "matrix_instr_nonkdim": "hip", "kpack": "hip", "schedule_hint": "hip",
    "maxnreg": "cuda", "launch_pdl": "cuda",
}  # fmt: skip
"""Options that one vendor's compiler knows; a launch that names them means that vendor."""


def _options(backend: Any, launch: AssumedLaunch, vendor: str) -> dict[str, Any]:
    """The options of a launch. Triton ignores names that it does not know: they are refused."""
    kept = {
        name: value for name, value in launch.options if _VENDOR_OPTIONS.get(name, vendor) == vendor
    }
    known = vars(backend.parse_options({}))
    unknown = [name for name in kept if name not in known]
    if unknown:
        raise AssumptionError(f"this Triton has no launch option `{unknown[0]}`")
    return kept


def _constant(text: str | None, module: types.ModuleType) -> Any:
    """The value of a constant: a literal, a name of ``tl`` or a device function of the module."""
    try:
        return _evaluated(ast.parse(text or "None", mode="eval").body, module)
    except (SyntaxError, AttributeError, ValueError) as error:
        raise AssumptionError(f"`{text}` cannot be evaluated: {error}") from error


def _evaluated(node: ast.expr, module: types.ModuleType) -> Any:
    import triton.language

    if isinstance(node, ast.Tuple):
        return tuple(_evaluated(part, module) for part in node.elts)
    if isinstance(node, ast.Attribute):
        return getattr(_evaluated(node.value, module), node.attr)
    if isinstance(node, ast.Name):
        return triton.language if node.id == "tl" else getattr(module, node.id)
    return ast.literal_eval(node)
