"""Bank conflicts are shown with the cycles they take, where they cost something."""

from code_subjects import HEADER, at, found, launch, line_of, subject

from search_engine.domain.code import MachineOperation as Op
from search_engine.domain.code import SharedAccess
from search_engine.findings.bank_conflict import BankConflict

KERNEL = (
    HEADER
    + """@triton.jit
def kernel(a, b, c, K, N: tl.constexpr):
    i = tl.arange(0, N)
    total = tl.zeros((N, N), tl.float32)
    for k in range(0, K, N):
        x = tl.load(a + i[:, None] * K + k + i[None, :])
        total = tl.dot(x, x, total, input_precision="ieee")
    tl.store(c + i[:, None] * N + i[None, :], total)
"""
)
DOT = line_of(KERNEL, "tl.dot")
WORK = at(DOT, (Op.FP32, 0, 400), (Op.SHARED_LOAD, 4, 144), depth=1)


def shared(wavefronts: int, *, depth: int = 1) -> SharedAccess:
    return SharedAccess(DOT, depth, False, 4, 144, wavefronts, 144)


def test_a_conflict_in_a_loop_is_shown_with_both_numbers() -> None:
    (item,) = found(BankConflict(), subject(KERNEL, launch(WORK, shared=(shared(960),))))
    assert item.line == DOT
    assert item.message == ("7-way bank conflict: shared loads take 960 cycles a warp, not 144")


def test_none_without_conflicts_nor_where_they_do_not_matter() -> None:
    assert found(BankConflict(), subject(KERNEL, launch(WORK, shared=(shared(144),)))) == []
    few = SharedAccess(DOT + 1, 0, True, 4, 1, 8, 1)
    assert found(BankConflict(), subject(KERNEL, launch(WORK, shared=(few,)))) == []


def test_the_library_is_not_the_users_line() -> None:
    outside = SharedAccess(None, 1, False, 4, 144, 960, 144)
    assert found(BankConflict(), subject(KERNEL, launch(WORK, shared=(outside,)))) == []
