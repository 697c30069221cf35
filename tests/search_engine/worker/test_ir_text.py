"""Triton modules as text: operations, nesting, types, places."""

from search_engine.worker.ir_places import Places
from search_engine.worker.ir_text import read_module
from search_engine.worker.ir_types import element_bytes, shaped_types

MODULE = """\
#blocked = #ttg.blocked<{sizePerThread = [1, 8], order = [1, 0]}>
#loc = loc("/k/kernels.py":30:0)
module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:90"} {
  tt.func public @kernel(%a: !tt.ptr<f16> {tt.divisibility = 16 : i32} loc("a"(#loc)), %n: i32 loc("n"(#loc))) attributes {noinline = false} {
    %cst = arith.constant dense<0.000000e+00> : tensor<64x64xf32, #blocked> loc(#loc1)
    %0:2 = scf.for %i = %c0 to %n step %c32 iter_args(%acc = %cst, %j = %c0) -> (tensor<64x64xf32, #blocked>, i32)  : i32 {
      %x = tt.load %p, %m {cache = 1 : i32} : tensor<64x!tt.ptr<f16>, #blocked> loc(#loc5)
      %y = "tt.reduce"(%x) <{axis = 0 : i32}> ({
      ^bb0(%u: f32 loc("u"(#loc)), %v: f32 loc(#loc1)):
        %s = arith.addf %u, %v : f32 loc(#loc4)
        tt.reduce.return %s : f32 loc(#loc3)
      }) : (tensor<64xf16, #blocked>) -> f32 loc(#loc3)
      %z = tt.elementwise_inline_asm "{ cvt.rna $0, $1; }" {pure = true} %x : tensor<64xf16, #blocked> -> tensor<64xf16, #blocked> loc(#loc5)
      %w = scf.if %c -> (i32) {
        scf.yield %k : i32 loc(#loc2)
      } else {
        scf.yield %q : i32 loc(#loc2)
      } loc(#loc2)
      scf.yield %acc, %w : tensor<64x64xf32, #blocked>, i32 loc(#loc2)
    } {tt.num_stages = 4 : i32} loc(#loc2)
    tt.return loc(#loc6)
  } loc(#loc)
} loc(#loc)
#loc1 = loc(unknown)
#loc2 = loc("acc"("/k/kernels.py":35:29))
#loc3 = loc(callsite("/t/standard.py":293:36 at #loc2))
#loc4 = loc(callsite(callsite(#loc1 at "/t/standard.py":263:15) at #loc3))
#loc5 = loc(fused[#loc1, "/k/kernels.py":36:20])
#loc6 = loc("/k/kernels.py":40:4 to :12)
"""  # noqa: E501


def named(name: str):
    return [item for item in read_module(MODULE) if item.name == name]


def test_operations_nest_and_know_their_loops():
    (loop,) = named("scf.for")
    (load,) = named("tt.load")
    (add,) = named("arith.addf")
    assert loop.is_loop
    assert (loop.loop_depth, load.loop_depth, add.loop_depth) == (0, 1, 1)
    assert "tt.num_stages = 4" in loop.text
    names = [item.name for item in loop.inside(nested_loops=False)]
    assert names.count("scf.yield") == 3
    assert names[-1] == "scf.yield"
    (last,) = named("tt.return")
    assert last.loop_depth == 0


def test_results_operands_and_types():
    (load,) = named("tt.load")
    assert (load.results, load.operands) == (("%x",), ("%p", "%m"))
    assert load.types == "tensor<64x!tt.ptr<f16>, #blocked>"
    (loop,) = named("scf.for")
    assert loop.results == ("%0",)
    (asm,) = named("tt.elementwise_inline_asm")
    assert asm.operands == ("%x",)
    (reduce,) = named("tt.reduce")
    assert reduce.types == "(tensor<64xf16, #blocked>) -> f32"


def test_places_are_chains_from_the_innermost_call():
    places = Places(MODULE)
    assert places.chain("#loc2") == (("/k/kernels.py", 35),)
    assert places.chain("#loc4") == (
        ("/t/standard.py", 263), ("/t/standard.py", 293), ("/k/kernels.py", 35),
    )  # fmt: skip
    assert places.chain("#loc1") == ()
    assert places.chain("#loc5") == (("/k/kernels.py", 36),)
    assert places.chain("#loc6") == (("/k/kernels.py", 40),)
    assert places.chain("#nothing") == ()
    (loop,) = named("scf.for")
    assert loop.chain == (("/k/kernels.py", 35),)


def test_a_place_that_names_itself_ends():
    assert Places("#loc1 = loc(callsite(#loc1 at #loc1))\n").chain("#loc1") == ()


def test_text_that_is_no_module_gives_nothing_and_does_no_harm():
    assert read_module("") == ()
    assert all(not item.is_loop for item in read_module("}}}\n{{{ \n%a = \nloc(\n"))


def test_shaped_types():
    text = (
        "tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>> * "
        "!ttg.memdesc<3x32x64xf8E4M3FN, #shared, #smem, mutable> -> tensor<64x!tt.ptr<f32>, #b>"
    )
    first, second, third = shaped_types(text)
    assert (first.shape, first.element_name, first.bytes) == ((64, 32), "f16", 4096)
    assert first.encoding == "#ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>"
    assert (second.shape, second.element_name) == ((3, 32, 64), "f8e4m3")
    assert (third.shape, third.bytes, third.encoding) == ((64,), 512, "#b")
    assert [element_bytes(name) for name in ("i1", "bf16", "f8E5M2", "i64")] == [1, 2, 1, 8]
