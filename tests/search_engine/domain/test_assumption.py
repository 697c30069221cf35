"""Each guess of an inferred launch is said once, and what the launch writes is not a guess."""

from search_engine.domain.assumption import WRITTEN, assumption_notes
from search_engine.domain.job import AssumedArgument

ARGUMENTS = (
    AssumedArgument("x", "*bf16", None, True),
    AssumedArgument("y", "*bf16", None, True),
    AssumedArgument("bias", "constexpr", "None"),
    AssumedArgument("n", "i32"),
    AssumedArgument("m", "i32", None, True),
    AssumedArgument("BLOCK", "constexpr", "1024"),
    AssumedArgument("WIDTH", "constexpr", "64", origin="as launched"),
    AssumedArgument("ROWS", "constexpr", "4", origin=WRITTEN),
)


def test_types_constants_options_and_sizes_are_said_and_what_is_written_is_not():
    assert assumption_notes(ARGUMENTS, ["num_warps = 8, from its first configuration"], True) == (
        "assumed bf16 behind x, y",
        "assumed bias = None",
        "assumed BLOCK = 1024",
        "assumed WIDTH = 64, as launched",
        "assumed num_warps = 8, from its first configuration",
        "assumed n not divisible by 16",
    )


def test_a_kernel_that_nothing_launches_says_so_first():
    assert assumption_notes((), (), False) == (
        "assumed every argument: nothing in this file launches the kernel",
    )
