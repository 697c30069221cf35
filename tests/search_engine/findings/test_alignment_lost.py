"""Narrow accesses are explained by the argument that makes them narrow, and by no other."""

from code_subjects import HEADER, at, constant, found, integer, launch, line_of, pointer, subject

from search_engine.domain.code import LaunchCode, LineCode
from search_engine.domain.code import MachineOperation as Op
from search_engine.findings.alignment_lost import AlignmentLost

ROWS = (
    HEADER
    + """@triton.jit(do_not_specialize=["stride"])
def kernel(x_ptr, y_ptr, n, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    keep = cols < n
    x = tl.load(x_ptr + row * stride + cols, mask=keep, other=0.0)
    tl.store(y_ptr + row * stride + cols, x * 2, mask=keep)


# kernel-lsp: workload x=f32[4096,1024]
# kernel-lsp: reference x * 2
def entry(x):
    y = torch.empty_like(x)
    kernel[(x.shape[0],)](x, y, x.shape[1], x.stride(0), BLOCK=1024)
    return y
"""
)
LOAD, STORE = line_of(ROWS, "x = tl.load"), line_of(ROWS, "tl.store")
LAUNCH = line_of(ROWS, "kernel[(x")
BLOCK = constant("BLOCK", 1024)


def rows(width: int, n: int, stride: int | None, *, withheld: bool = False) -> LaunchCode:
    """1024 floats a block of 128 threads: 32 bytes a thread."""
    arguments = (
        pointer("x_ptr"),
        pointer("y_ptr"),
        integer("n", n),
        integer("stride", stride, specialised=not withheld),
        BLOCK,
    )
    count = 32 // width
    return launch(
        at(LOAD, (Op.GLOBAL_LOAD, width, count)),
        at(STORE, (Op.GLOBAL_STORE, width, count)),
        arguments=arguments,
        line=LAUNCH,
    )


def test_a_withheld_fact_is_blamed_on_the_decorator_and_the_rule_answers_it() -> None:
    load, store = found(AlignmentLost(), subject(ROWS, rows(4, 1024, 1024, withheld=True)))
    assert (load.line, store.line) == (LOAD, STORE)
    assert load.message == (
        "`do_not_specialize` hides that `stride` is divisible by 16: 8 loads of 4 B, not 2 of 16 B"
    )
    assert store.message.endswith("8 stores of 4 B, not 2 of 16 B")
    assert load.rule == "specialise-sizes"
    (related,) = load.related
    assert related.line == line_of(ROWS, "@triton.jit")
    assert load.cost > 0.05


def test_a_stride_that_is_not_divisible_is_named_with_its_value_at_the_launch() -> None:
    load, _ = found(AlignmentLost(), subject(ROWS, rows(4, 1024, 1032)))
    assert load.message.startswith("`stride` = 1,032 is divisible by 8 only: 8 loads of 4 B")
    assert load.rule is None
    assert [item.line for item in load.related] == [LAUNCH]


def test_the_mask_bound_is_named_where_the_address_is_aligned() -> None:
    load, _ = found(AlignmentLost(), subject(ROWS, rows(4, 1001, 1024)))
    assert load.message.startswith("mask bound `n` = 1,001 is odd: 8 loads of 4 B")


def test_both_are_named_where_both_are_needed() -> None:
    load, _ = found(AlignmentLost(), subject(ROWS, rows(4, 1004, 1004)))
    assert load.facts["arguments"] == "n, stride"


def test_wide_accesses_need_no_explanation() -> None:
    assert found(AlignmentLost(), subject(ROWS, rows(16, 1024, 1024))) == []


def test_narrow_accesses_that_the_arguments_do_not_explain_are_left_alone() -> None:
    assert found(AlignmentLost(), subject(ROWS, rows(4, 1024, 1024))) == []
    # 8 bytes a thread although the compiler's rules allow 4 only: the analysis does not fit.
    assert found(AlignmentLost(), subject(ROWS, rows(8, 1001, 1001))) == []


def test_one_element_a_thread_cannot_be_wider() -> None:
    small = launch(
        at(LOAD, (Op.GLOBAL_LOAD, 4, 1)),
        arguments=(
            pointer("x_ptr"),
            pointer("y_ptr"),
            integer("n", 100),
            integer("stride", 100),
            constant("BLOCK", 128),
        ),
    )
    assert found(AlignmentLost(), subject(ROWS, small)) == []


def test_an_assumed_launch_tells_withheld_facts_only() -> None:
    arguments = (pointer("x_ptr"), pointer("y_ptr"), integer("n", 1024))
    lines = (at(LOAD, (Op.GLOBAL_LOAD, 4, 8)),)
    unknown = (*arguments, integer("stride", None), BLOCK)
    withheld = (*arguments, integer("stride", None, specialised=False), BLOCK)
    assert found(AlignmentLost(), subject(ROWS, _assumed(lines, unknown))) == []
    (item,) = found(AlignmentLost(), subject(ROWS, _assumed(lines, withheld)))
    assert item.message.startswith("`do_not_specialize` hides whether `stride` is divisible by 16")
    assert item.assumed


def test_the_bytes_that_the_line_moves_decide_what_it_costs() -> None:
    slim = rows(4, 1024, 1032)
    elsewhere = at(LOAD - 1, (Op.GLOBAL_LOAD, 16, 64))
    wide = launch(*slim.lines, elsewhere, arguments=slim.arguments)
    alone = found(AlignmentLost(), subject(ROWS, slim))[0].cost
    assert all(item.cost < alone / 2 for item in found(AlignmentLost(), subject(ROWS, wide)))


MATMUL = (
    HEADER
    + """@triton.jit
def _rows(pid, size: tl.constexpr):
    return pid * size + tl.arange(0, size)


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = _rows(tl.program_id(0), BM) % M
    cols = _rows(tl.program_id(1), BN) % N
    ks = tl.arange(0, BK)
    a = a_ptr + rows[:, None] * K + ks[None, :]
    b = b_ptr + ks[:, None] * N + cols[None, :]
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        left = tl.load(a, mask=ks[None, :] < K - k * BK, other=0.0)
        right = tl.load(b, mask=ks[:, None] < K - k * BK, other=0.0)
        total = tl.dot(left, right, total)
        a += BK
        b += BK * N
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], total.to(tl.float16))
"""
)
LEFT, RIGHT = line_of(MATMUL, "left = "), line_of(MATMUL, "right = ")


def matmul(n: int, k: int, left: int, right: int) -> LaunchCode:
    """64 x 32 halves of A and 32 x 64 of B by 128 threads: 32 bytes a thread each."""
    arguments = (
        *(pointer(name, "*fp16") for name in ("a_ptr", "b_ptr", "c_ptr")),
        integer("M", 1024),
        integer("N", n),
        integer("K", k),
        constant("BM", 64),
        constant("BN", 64),
        constant("BK", 32),
    )
    lines: tuple[LineCode, ...] = (
        at(LEFT, (Op.GLOBAL_LOAD, left, 32 // left), depth=1),
        at(RIGHT, (Op.GLOBAL_LOAD, right, 32 // right), depth=1),
    )
    return launch(*lines, arguments=arguments)


def test_loops_helpers_and_remainders_are_followed() -> None:
    (only_left,) = found(AlignmentLost(), subject(MATMUL, matmul(1024, 72, left=2, right=16)))
    assert only_left.line == LEFT
    assert only_left.message == "`K` = 72 is divisible by 8 only: 16 loads of 2 B, not 2 of 16 B"
    (only_right,) = found(AlignmentLost(), subject(MATMUL, matmul(1016, 64, left=16, right=2)))
    assert only_right.line == RIGHT
    assert "`N` = 1,016 is divisible by 8 only" in only_right.message


def _assumed(lines: tuple[LineCode, ...], arguments: tuple) -> LaunchCode:
    return launch(*lines, arguments=arguments, assumed=True)
