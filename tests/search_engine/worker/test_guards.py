"""Buffers that an entry allocates are poisoned and watched like those it is given."""

import pytest

from search_engine.worker.guards import GUARD_BYTES, SECOND_POISON, GuardedRun, allocate

torch = pytest.importorskip("torch")


@pytest.mark.parametrize(
    "make",
    [
        lambda x: torch.empty(4, 6),
        lambda x: torch.empty_like(x),
        lambda x: x.new_empty((4, 6)),
        lambda x: torch.empty_strided((4, 6), (1, 4)),
    ],
)
def test_uninitialised_buffers_hold_nan(make):
    run = GuardedRun()
    with run.factories():
        made = make(torch.ones(4, 6))
    assert bool(made.isnan().all()) and made.shape == (4, 6)
    assert run.damaged() is None


def test_initialised_buffers_keep_their_values_and_layout():
    run = GuardedRun()
    with run.factories():
        made = torch.zeros(3, 5, dtype=torch.int32), torch.full((2,), 7.0), torch.ones(3, 4).t()
        copied = made[2].clone()
    assert not made[0].any() and made[1].tolist() == [7, 7]
    assert copied.stride() == (1, 4) and bool((copied == 1).all())


def test_integers_are_poisoned_with_the_pattern_of_the_run():
    values = set()
    for poison in (0xFF, SECOND_POISON):
        run = GuardedRun(poison)
        with run.factories():
            values.add(int(torch.empty(1, dtype=torch.int32)))
    assert len(values) == 2


@pytest.mark.parametrize("offset", [-1, 6, GUARD_BYTES // 4])
def test_a_write_outside_an_allocated_buffer_is_found(offset):
    run = GuardedRun()
    with run.factories():
        made = torch.empty(6)
        made.fill_(0.0)
        made.as_strided((1,), (1,), made.storage_offset() + offset).fill_(1.0)
    assert run.damaged() == "buffer 0"


def test_tensors_with_a_gradient_history_are_left_alone():
    run = GuardedRun()
    with run.factories():
        leaf = torch.zeros(3, requires_grad=True)
        (leaf.clone() * 2).sum().backward()
    assert leaf.grad.tolist() == [2, 2, 2]


def test_empty_buffers_have_guards_too():
    buffer = allocate("x", (0, 4), (4, 1), torch.float32, "cpu")
    assert buffer.tensor.shape == (0, 4) and not bool(buffer.damage())
