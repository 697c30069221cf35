"""Loops that wait for their loads are shown with the reason; those that need not are not."""

from code_subjects import HEADER, at, constant, found, integer, launch, line_of, pointer, subject

from search_engine.domain.access import LaunchTrace, LoopTrace
from search_engine.domain.code import DotCode, LaunchCode, LineCode, MatrixPath, PipelinedLoop
from search_engine.domain.code import MachineOperation as Op
from search_engine.findings.no_pipelining import NoPipelining

PRODUCT = (
    HEADER
    + """@triton.jit
def kernel(a, b, c, K, N: tl.constexpr):
    i = tl.arange(0, N)
    total = tl.zeros((N, N), tl.float32)
    for k in range(0, K, N):
        x = tl.load(a + i[:, None] * K + k + i[None, :])
        y = tl.load(b + (k + i)[:, None] * N + i[None, :])
        total = tl.dot(x, y, total)
    tl.store(c + i[:, None] * N + i[None, :], total)
"""
)
LOOP, X = line_of(PRODUCT, "for k"), line_of(PRODUCT, "x = tl.load")
STREAM = PRODUCT.replace("total = tl.dot(x, y, total)", "total += x * y")


def code(
    *,
    stages: int = 3,
    prefetched: int = 0,
    dot: bool = True,
    width: int = 16,
    registers: int = 128,
    end: int = 3,
    assumed: bool = False,
) -> LaunchCode:
    lines: tuple[LineCode, ...] = (
        at(X, (Op.GLOBAL_LOAD, width, 2), depth=1),
        at(X + 1, (Op.GLOBAL_LOAD, width, 2), depth=1),
        at(X + 2, (Op.OTHER, 0, 8), depth=1),
    )
    dots = (DotCode(X + 2, ("f16", "f16"), "f32", MatrixPath.TENSOR, (64, 64, 64), None, 1),)
    loop = PipelinedLoop(LOOP, LOOP + end, 2, prefetched, stages, dot)
    arguments = (
        *(pointer(name, "*fp16") for name in "abc"), integer("K", 1024), constant("N", 64),
    )  # fmt: skip
    return launch(
        *lines,
        arguments=arguments,
        stages=stages,
        dots=dots if dot else (),
        loops=(loop,),
        registers=registers,
        assumed=assumed,
    )


def test_one_stage() -> None:
    (item,) = found(NoPipelining(), subject(PRODUCT, code(stages=1)))
    assert item.line == LOOP
    assert item.message == "the 2 loads in this loop are not prefetched: num_stages=1"


def test_prefetched_loads_are_fine() -> None:
    assert found(NoPipelining(), subject(PRODUCT, code(prefetched=2))) == []
    assert found(NoPipelining(), subject(PRODUCT, code(prefetched=1))) == []


def test_narrow_loads_cannot_be_copied_asynchronously() -> None:
    (item,) = found(NoPipelining(), subject(PRODUCT, code(width=2)))
    assert item.message.endswith("2 bytes a thread, an asynchronous copy needs 4")


def test_an_assumed_launch_does_not_tell_how_wide_loads_are() -> None:
    assert found(NoPipelining(), subject(PRODUCT, code(width=2, assumed=True))) == []
    (item,) = found(NoPipelining(), subject(PRODUCT, code(stages=1, assumed=True)))
    assert item.message.endswith("num_stages=1, assuming N=64")


def test_single_values_are_never_prefetched() -> None:
    scalars = STREAM.replace("i[:, None] * K + k + i[None, :]", "k").replace(
        "(k + i)[:, None] * N + i[None, :]", "k + 1"
    )
    assert found(NoPipelining(), subject(scalars, code(dot=False, width=4, registers=255))) == []


def test_loads_under_a_branch() -> None:
    branched = PRODUCT.replace(
        "        x = tl.load(a + i[:, None] * K + k + i[None, :])\n"
        "        y = tl.load(b + (k + i)[:, None] * N + i[None, :])\n"
        "        total = tl.dot(x, y, total)\n",
        "        if k > 0:\n"
        "            x = tl.load(a + i[:, None] * K + k + i[None, :])\n"
        "            total = tl.dot(x, x, total)\n",
    )
    (item,) = found(NoPipelining(), subject(branched, code()))
    assert item.message.endswith("they stand under an `if`")


def test_loads_at_loaded_addresses() -> None:
    indirect = PRODUCT.replace("tl.load(b + (k + i)", "tl.load(b + x")
    (item,) = found(NoPipelining(), subject(indirect, code()))
    assert item.message.endswith("their addresses are loaded in it")


def test_no_known_reason_no_finding() -> None:
    assert found(NoPipelining(), subject(PRODUCT, code())) == []


def test_a_stream_is_shown_only_if_few_bytes_are_in_flight() -> None:
    few = code(dot=False, width=4, registers=255)
    (item,) = found(NoPipelining(), subject(STREAM, few))
    assert "only `tl.range(..., num_stages=...)` prefetches without a dot" in item.message
    many = code(dot=False, width=16, registers=32)
    assert found(NoPipelining(), subject(STREAM, many)) == []


def test_a_loop_that_runs_three_times_is_left_alone() -> None:
    loops = (LoopTrace(LOOP, 3.0, 3),)
    trace = LaunchTrace("kernel", None, 1, (64, 1, 1), 24, (), loops)
    assert found(NoPipelining(), subject(PRODUCT, code(stages=1), traces=(trace,))) == []
