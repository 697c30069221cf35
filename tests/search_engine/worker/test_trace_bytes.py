"""Distinct bytes and the busiest address, against a count of every byte."""

from __future__ import annotations

import random

import pytest

numpy = pytest.importorskip("numpy")

from search_engine.worker import trace_bytes  # noqa: E402
from search_engine.worker.trace_bytes import AddressCounts, DistinctBytes  # noqa: E402
from search_engine.worker.trace_pattern import Pattern  # noqa: E402


def _pattern(*distances: int, size: int = 4) -> Pattern:
    return Pattern(numpy.array(distances, dtype=numpy.uint64), None, size)


@pytest.mark.parametrize("pending", [4, 1 << 18])
def test_each_byte_counts_once(monkeypatch, pending):
    monkeypatch.setattr(trace_bytes, "_MOST_PENDING", pending)
    chosen = random.Random(7)
    counted, every = DistinctBytes(), set()
    for _ in range(200):
        distances = [0, *(4 * chosen.randrange(20) for _ in range(6))]
        base = 4 * chosen.randrange(300)
        counted.add(_pattern(*distances), base)
        every.update(base + at + i for at in distances for i in range(4))
        assert chosen.random() < 0.95 or counted.total() == len(every)
    assert counted.total() == len(every) and counted.exact


def test_too_many_intervals_give_an_upper_bound(monkeypatch):
    monkeypatch.setattr(trace_bytes, "_MOST_INTERVALS", 8)
    counted, pattern = DistinctBytes(), _pattern(0)
    for base in range(0, 1000, 100):
        counted.add(pattern, base)
    assert counted.total() == 40 and not counted.exact
    counted.add(pattern, 0)
    assert counted.total() == 44, "read again, taken to be new"


def test_the_busiest_address_is_found(monkeypatch):
    monkeypatch.setattr(trace_bytes, "_MOST_ADDRESSES", 16)
    counts = AddressCounts()
    for i in range(50):
        counts.add(_pattern(0, 64 + 4 * i, 0), 1000)
        counts.add(_pattern(0), 1000)
    assert counts.most == 150
