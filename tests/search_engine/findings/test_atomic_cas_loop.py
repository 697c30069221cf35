"""Emulated atomics are shown by the name the author used."""

from code_subjects import HEADER, L40S, at, found, launch, line_of, subject

from search_engine.domain.code import MachineOperation as Op
from search_engine.findings.atomic_cas_loop import AtomicCasLoop

KERNEL = (
    HEADER
    + """@triton.jit
def kernel(x, y, lock, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.atomic_add(y + i, tl.load(x + i))
    tl.atomic_cas(lock, 0, 1)
    tl.store(x + i, i)
"""
)
ADD, CAS = line_of(KERNEL, "atomic_add"), line_of(KERNEL, "atomic_cas")


def test_an_emulated_atomic() -> None:
    code = launch(at(ADD, (Op.ATOMIC_CAS, 2, 4)))
    (item,) = found(AtomicCasLoop(), subject(KERNEL, code, target=L40S))
    assert item.line == ADD
    assert item.message == "`atomic_add` becomes a compare-and-swap loop on sm_89"


def test_real_atomics_and_the_authors_own_compare_and_swap() -> None:
    for harmless in (at(ADD, (Op.ATOMIC, 4, 4)), at(CAS, (Op.ATOMIC_CAS, 4, 1))):
        assert found(AtomicCasLoop(), subject(KERNEL, launch(harmless))) == []
