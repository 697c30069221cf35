from __future__ import annotations

from search_engine.archive.facts_cache import MemoryFacts
from search_engine.archive.facts_store import CodeEntry, KeptFacts
from search_engine.domain.code import (
    ArgumentKind,
    DotCode,
    InstructionCount,
    KernelArgument,
    LaunchCode,
    LayoutConversion,
    LineCode,
    MachineOperation,
    MatrixPath,
)
from search_engine.domain.facts import LaunchFacts
from search_engine.domain.job import Refusal, RefusalKind
from search_engine.frontends.triton import parse_module

TEXT = """\
import triton
import triton.language as tl


@triton.jit
def k(x_ptr, n, B: tl.constexpr):
    a = tl.load(x_ptr + tl.arange(0, B))
    b = tl.load(x_ptr + n +
                tl.arange(0, B))
    tl.store(x_ptr, a + b)
"""
JOINED = TEXT.replace("n +\n                tl", "n + tl")


def code(text_lines: tuple[LineCode, ...]) -> LaunchCode:
    facts = LaunchFacts("k", (1, 1, 1), 4, 3, (("B", "64"),), 32, 0, 0, "ab", 0, 9, 4)
    argument = KernelArgument("x_ptr", ArgumentKind.POINTER, "*fp32", True, None)
    dot = DotCode(7, ("bf16", "bf16"), "f32", MatrixPath.TENSOR, (16, 16, 16), None, 1)
    return LaunchCode(
        facts, None, (argument,), text_lines, (dot,), (LayoutConversion(9, 64, 0),), (),
        (("ptx", 0.5),), True, ("a note",),
    )  # fmt: skip


def loads(line: int | None, count: int) -> LineCode:
    return LineCode(line, 0, (InstructionCount(MachineOperation.GLOBAL_LOAD, 4, count),))


def test_facts_come_back_as_they_were() -> None:
    module = parse_module(TEXT, "k.py")
    store = MemoryFacts()
    entry = CodeEntry((code((loads(6, 1), loads(None, 2))),))
    KeptFacts(store).save("key", module, module.units[0], entry)
    found = KeptFacts(store).code("key", module, module.units[0])
    assert found is not None
    assert found.launches == entry.launches
    assert KeptFacts(store).code("other", module, module.units[0]) is None


def test_lines_that_were_joined_are_one_line() -> None:
    module, joined = parse_module(TEXT, "k.py"), parse_module(JOINED, "k.py")
    assert module.units[0].hash == joined.units[0].hash
    store = MemoryFacts()
    entry = CodeEntry((code((loads(7, 1), loads(8, 2), loads(9, 4))),))
    KeptFacts(store).save("key", module, module.units[0], entry)
    found = KeptFacts(store).code("key", joined, joined.units[0])
    assert found is not None
    assert found.launches[0].lines == (loads(7, 3), loads(8, 4))


def test_an_entry_that_is_damaged_or_of_another_unit_is_none() -> None:
    module = parse_module(TEXT, "k.py")
    other = parse_module(TEXT.replace("a + b", "a + b + a"), "k.py")
    store = MemoryFacts()
    KeptFacts(store).save("key", module, module.units[0], CodeEntry((code(()),)))
    assert KeptFacts(store).code("key", other, other.units[0]) is None
    for damaged in ("", "{", "[]", '{"launches": 3}'):
        store.put("key", damaged)
        assert KeptFacts(store).code("key", module, module.units[0]) is None


def test_what_may_pass_is_kept_for_this_process_only() -> None:
    module = parse_module(TEXT, "k.py")
    unit = module.units[0]
    for kind, here, elsewhere in (
        (RefusalKind.COMPILE, True, True),
        (RefusalKind.UNSUPPORTED, True, True),
        (RefusalKind.RUNTIME, True, False),
        (RefusalKind.WORKLOAD, True, False),
        (RefusalKind.ENVIRONMENT, False, False),
    ):
        store = MemoryFacts()
        kept = KeptFacts(store)
        kept.save("key", module, unit, CodeEntry((), Refusal(kind, "no", 7)))
        assert (kept.code("key", module, unit) is not None) is here, kind
        assert (KeptFacts(store).code("key", module, unit) is not None) is elsewhere, kind
