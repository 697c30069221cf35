"""How wide the accesses of a launch can be, and which arguments keep them narrow.

The answer is a comparison: the same analysis with an argument as it was passed, and as it would be
if the compiler knew that it is divisible by 16. Where the first does not agree with the width in
the machine code, nothing is said.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable
from dataclasses import dataclass

from search_engine.domain.code import (
    ArgumentKind,
    InstructionCount,
    KernelArgument,
    LaunchCode,
    LineCode,
    MachineOperation,
)
from search_engine.findings import _axes
from search_engine.findings._accesses import Access, Surroundings, accesses_of
from search_engine.findings._axes import Value
from search_engine.findings._base import Subject
from search_engine.findings._code import GLOBAL_ACCESSES, budget, bytes_of, weight_of
from search_engine.findings._source import functions_by_name, global_constants, syntax_tree

_WIDEST = 16
_BYTES = {
    "fp64": 8, "fp32": 4, "fp16": 2, "bf16": 2, "i64": 8, "u64": 8, "i32": 4, "u32": 4, "i16": 2,
    "u16": 2, "i8": 1, "u8": 1, "i1": 1, "u1": 1,
}  # fmt: skip
_GAIN = {1: 0.6, 2: 0.45, 4: 0.22, 8: 0.06}
"""Share of a memory-bound kernel's time that goes with 16-byte accesses instead of this width.
4 bytes: a vector addition took 237 us with them and 187 us with 16 on an H200. 2 bytes: three row
kernels in 16 bits gained 1.3 to 2.0 times on an H100 (pytorch/helion, pull request 2426)."""
_IN_PRODUCTS = 0.5
"""Below 4 bytes the operands of a product cannot be copied asynchronously either."""
LOADS = (MachineOperation.GLOBAL_LOAD, MachineOperation.ASYNC_COPY)
STORES = (MachineOperation.GLOBAL_STORE,)


@dataclass(frozen=True, slots=True)
class Narrow:
    """One access that the machine code makes with ``count`` instructions of ``width`` bytes.

    ``wide`` is the width it could have if ``culprits`` were divisible by 16; without culprits, the
    width that the compiler could prove as things are. ``in_mask``: they bound the mask.
    """

    line: int
    store: bool
    code: LineCode
    count: int
    width: int
    wide: int
    culprits: tuple[KernelArgument, ...]
    in_mask: bool

    @property
    def wide_count(self) -> int:
        """Instructions that would do."""
        return max(1, self.count * self.width // self.wide)


def narrow_accesses(subject: Subject, launch: LaunchCode) -> tuple[Narrow, ...]:
    """Accesses of the kernel that are narrower than they could be, in source order."""
    found = _accesses(subject, launch, frozenset())
    narrow = (_narrow(subject, launch, access) for access in found)
    return tuple(item for item in narrow if item is not None)


def known_accesses(subject: Subject, launch: LaunchCode) -> tuple[Access, ...]:
    """Every load and store of the kernel that is understood, with what the compiler can prove."""
    return _accesses(subject, launch, frozenset())


def element_bytes(dtype: str) -> int:
    """Bytes of a Triton element type, ``*fp32`` or ``bf16``; 0 if it is not known."""
    name = dtype.removeprefix("*").removeprefix("k")
    return 1 if name.startswith("fp8") else _BYTES.get(name, 0)


def lanes(subject: Subject, launch: LaunchCode) -> int:
    """Threads of a block."""
    return launch.facts.warps * subject.target.warp_size


def innermost_count(
    launch: LaunchCode, first: int, last: int, operations: tuple[MachineOperation, ...]
) -> tuple[LineCode, InstructionCount] | None:
    """The accesses of these lines in the machine code, at their deepest loop.

    None if they have several widths there: those may belong to different accesses.
    """
    places = [
        (code, item)
        for code in launch.lines
        if code.line is not None and first <= code.line <= last
        for item in code.counts
        if item.operation in operations and item.width_bytes > 0
    ]
    depth = max((code.loop_depth for code, _ in places), default=0)
    deepest = [(code, item) for code, item in places if code.loop_depth == depth]
    if len({item.width_bytes for _, item in deepest}) != 1:
        return None
    return max(deepest, key=lambda place: place[1].count)


def access_cost(subject: Subject, launch: LaunchCode, item: Narrow) -> float:
    """Share of the launch at stake: the line's part of the bytes, as far as memory limits it."""
    whole = budget(subject, launch)
    moved = weight_of(subject, item.code) * item.count * item.width
    total = sum(
        weight_of(subject, code) * bytes_of(code, *GLOBAL_ACCESSES) for code in launch.lines
    )
    waits = whole.memory_share if not launch.dots else max(_IN_PRODUCTS, whole.memory_share)
    gain = _GAIN.get(item.width, 0.0) - _GAIN.get(item.wide, 0.0)
    return waits * gain * moved / total if total else 0.0


def _narrow(subject: Subject, launch: LaunchCode, access: Access) -> Narrow | None:
    size, threads = access.pointer.element_bytes, lanes(subject, launch)
    wanted = min(_WIDEST, size * max(1, access.elements // threads))
    expected = access.vector_bytes(threads)
    seen = _seen(launch, access)
    if seen is None or seen[1].width_bytes >= wanted:
        return None
    code, item = seen
    line = access.call.lineno - 1
    if item.width_bytes < expected:
        return Narrow(
            line, access.store, code, item.count, item.width_bytes, expected, (), in_mask=False
        )
    if item.width_bytes != expected:
        return None
    blamed = _blame(subject, launch, access, expected)
    if blamed is None:
        return None
    culprits, wide = blamed
    in_mask = access.mask_elements < access.pointer_elements
    return Narrow(
        line, access.store, code, item.count, item.width_bytes, wide, culprits, in_mask=in_mask
    )


def _seen(launch: LaunchCode, access: Access) -> tuple[LineCode, InstructionCount] | None:
    call = access.call
    last = (call.end_lineno or call.lineno) - 1
    return innermost_count(launch, call.lineno - 1, last, STORES if access.store else LOADS)


def _blame(
    subject: Subject, launch: LaunchCode, access: Access, now: int
) -> tuple[tuple[KernelArgument, ...], int] | None:
    """The fewest arguments without whose lack of alignment the access is wider, and how wide."""
    suspects = [item for item in launch.arguments if _unaligned(item)]
    wide = _width_with(subject, launch, access, suspects)
    if wide <= now:
        return None
    for suspect in tuple(suspects):
        rest = [item for item in suspects if item != suspect]
        if _width_with(subject, launch, access, rest) == wide:
            suspects = rest
    return tuple(suspects), wide


def _width_with(
    subject: Subject, launch: LaunchCode, access: Access, freed: Iterable[KernelArgument]
) -> int:
    names = frozenset(item.name for item in freed)
    for other in _accesses(subject, launch, names):
        if other.call is access.call:
            return other.vector_bytes(lanes(subject, launch))
    return 0


def _unaligned(argument: KernelArgument) -> bool:
    kinds = (ArgumentKind.POINTER, ArgumentKind.INTEGER)
    return argument.kind in kinds and not argument.divisible_by_16


def _accesses(subject: Subject, launch: LaunchCode, freed: frozenset[str]) -> tuple[Access, ...]:
    return _cached(subject.module.text, subject.unit.kernel.name_span.line, launch.arguments, freed)


@functools.lru_cache(maxsize=512)
def _cached(
    text: str, line: int, arguments: tuple[KernelArgument, ...], freed: frozenset[str]
) -> tuple[Access, ...]:
    tree = syntax_tree(text)
    functions = functions_by_name(text)
    kernel = next((node for node in functions.values() if node.lineno - 1 == line), None)
    if tree is None or kernel is None:
        return ()
    values: dict[str, Value] = {}
    constants: dict[str, object] = {}
    for item in arguments:
        if item.kind is ArgumentKind.CONSTANT:
            constants[item.name] = _literal(item.value)
        value = _value(item, freed=item.name in freed)
        if value is not None:
            values[item.name] = value
    around = Surroundings(functions, global_constants(text))
    return accesses_of(kernel, values, constants, around)


def _value(item: KernelArgument, *, freed: bool) -> Value | None:
    if item.kind is ArgumentKind.CONSTANT:
        known = _literal(item.value)
        return _axes.constant(int(known)) if isinstance(known, int) else None
    divisibility = 16 if item.divisible_by_16 or freed else 1
    if item.kind is ArgumentKind.POINTER:
        size = element_bytes(item.dtype)
        return _axes.scalar(divisibility, size, argument=True, base=item.name) if size else None
    if item.kind is ArgumentKind.INTEGER:
        if freed and item.value == "1":
            return _axes.constant(1)  # the compiler folds a one in, once it may look at the value
        return _axes.scalar(divisibility, argument=True)
    return None


def _literal(text: str | None) -> object:
    try:
        return ast.literal_eval(text) if text is not None else None
    except (SyntaxError, ValueError):
        return text
