"""Frames out of a byte stream, however it is cut."""

from hypothesis import given
from hypothesis import strategies as st

from kernel_lsp.protocol.transport import FrameReader

BODIES = st.lists(st.binary(min_size=0, max_size=40), max_size=5)


@given(BODIES, st.lists(st.integers(1, 30), min_size=1))
def test_cuts_do_not_matter(bodies, cuts):
    stream = b"".join(b"content-length:%d\r\nX: y\r\n\r\n" % len(b) + b for b in bodies)
    reader, found, position, turn = FrameReader(), [], 0, 0
    while position < len(stream):
        step = cuts[turn % len(cuts)]
        found += reader.feed(stream[position : position + step])
        position, turn = position + step, turn + 1
    assert found == bodies


def test_a_header_without_a_length_is_passed_over():
    good = b"Content-Length: 2\r\n\r\n{}"
    for bad in (b"Hello: 1\r\n\r\n", b"Content-Length: -4\r\n\r\n", b"Content-Length: x\r\n\r\n"):
        assert FrameReader().feed(bad + good) == [b"{}"]


def test_an_absurd_length_is_not_waited_for():
    good = b"Content-Length: 2\r\n\r\n{}"
    assert FrameReader().feed(b"Content-Length: 99999999999\r\n\r\n" + good) == [b"{}"]
