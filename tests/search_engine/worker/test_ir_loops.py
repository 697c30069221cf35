"""Loops that load, and which of their loads an earlier iteration has begun."""

from search_engine.domain.code import PipelinedLoop
from search_engine.worker.code_places import UserText
from search_engine.worker.ir_loops import pipelined_loops
from search_engine.worker.ir_text import read_module

USER = UserText("/s/versions/0/kernels.py", "/k/kernels.py")
SOURCE = (
    "def kernel():\n    for i in range(\n        9,\n    ):\n        x = load(i)\n        y = x\n"
)


def loops(*body: str, original: str = "", head: str = "") -> tuple[PipelinedLoop, ...]:
    rows = "\n".join(f"      {row}" for row in body)
    text = (
        "module {\n  tt.func public @kernel() {\n"
        f"{head}    %0 = scf.for %i = %a to %b step %c  : i32 {{\n{rows}\n"
        '    } loc("/k/kernels.py":3:8)\n  }\n}\n'
    )
    return pipelined_loops(read_module(text), read_module(original), 3, SOURCE, USER)


def prefetched(*body: str, head: str = "") -> tuple[int, int]:
    (loop,) = loops(*body, head=head)
    return loop.loads, loop.prefetched


LOAD = "%x = tt.load %p : tensor<64x!tt.ptr<f16>, #b>"
YIELD = "scf.yield %x : tensor<64xf16, #b>"


def test_a_load_that_its_own_iteration_uses_is_not_prefetched():
    assert prefetched(LOAD, "%y = arith.addf %x, %x : tensor<64xf16, #b>") == (1, 0)
    assert prefetched(LOAD, YIELD, "%y = arith.addf %x, %x : tensor<64xf16, #b>") == (1, 0)


def test_a_load_that_is_only_kept_for_the_next_iteration_is():
    assert prefetched(LOAD, YIELD) == (1, 1)
    store = "ttg.local_store %x, %buf : tensor<64xf16, #b> -> !ttg.memdesc<64xf16, #s, mutable>"
    assert prefetched(LOAD, store) == (1, 1)


def test_a_buffer_that_the_same_iteration_reads_is_none_of_the_next():
    assert prefetched(
        LOAD,
        "ttg.local_store %x, %buf : tensor<64xf16, #b> -> !ttg.memdesc<64xf16, #s, mutable>",
        "%y = ttg.local_load %buf : !ttg.memdesc<64xf16, #s, mutable> -> tensor<64xf16, #b>",
    ) == (1, 0)


COPY = "%t = ttg.async_copy_global_to_local %p, %buf : tensor<64x!tt.ptr<f16>, #b> -> <64xf16, #s>"


def test_a_copy_whose_token_is_kept_is_prefetched_and_one_that_is_awaited_is_not():
    commit = "%u = ttg.async_commit_group tokens %t"
    assert prefetched(COPY, commit, "scf.yield %u : !ttg.async.token") == (1, 1)
    assert prefetched(COPY, commit, "%v = ttg.async_wait %u {num = 0 : i32}") == (1, 0)


def test_a_bulk_copy_into_a_ring_of_buffers_is_prefetched():
    copy = (
        "ttng.async_tma_copy_global_to_local %d[%i] %buf, %bar, %true : "
        "!tt.tensordesc<tensor<64xf16>>, !ttg.memdesc<1xi64, #s> -> !ttg.memdesc<64xf16, #s>"
    )
    barriers = "!ttg.memdesc<3x1xi64, #s> -> !ttg.memdesc<1xi64, #s>\n"
    bar = f"    %bar = ttg.memdesc_index %bars[%i] : {barriers}"
    ring = "!ttg.memdesc<{}x64xf16, #s, mutable> -> !ttg.memdesc<64xf16, #s, mutable>\n"
    index = "    %buf = ttg.memdesc_index %ring[%i] : "
    assert prefetched(copy, head=bar + index + ring.format(3)) == (1, 1)
    assert prefetched(copy, head=bar + index + ring.format(1)) == (1, 0)


def test_lines_are_those_of_the_whole_loop_and_its_own_stages_go_first():
    assert loops(LOAD, YIELD) == (PipelinedLoop(1, 5, 1, 1, 3, False),)
    original = (
        "module {\n  scf.for %i = %a to %b step %c  : i32 {\n"
        '  } {tt.num_stages = 5 : i32} loc("/k/kernels.py":3:8)\n}\n'
    )
    assert loops(LOAD, YIELD, original=original)[0].stages == 5


def test_a_loop_without_loads_is_left_out_and_an_outer_one_does_not_count_inner_loads():
    assert loops("%y = arith.addf %x, %x : f32") == ()
    (inner,) = loops(
        "%1 = scf.for %j = %a to %b step %c  : i32 {", LOAD, '} loc("/elsewhere/other.py":9:8)',
        "%y = tt.dot %l, %r, %acc : tensor<1x1xf16> * tensor<1x1xf16> -> tensor<1x1xf32>",
    )  # fmt: skip
    assert (inner.line, inner.loads, inner.has_dot) == (None, 1, False)
