"""Messages survive the wire; anything else is an error, not a wrong message."""

import pytest

from search_engine.domain.job import HangJob, Refusal, RefusalKind
from search_engine.execution.wire import Hello, Request, Response, WireError, from_line, to_line


def test_messages_survive_a_round_trip():
    request = Request("a1", HangJob("sleep", 1.5))
    response = Response("a1", Refusal(RefusalKind.COMPILE, "zeile\nzwei – ü", line=3), 0.25)
    for message in (request, response):
        line = to_line(message)
        assert line.count(b"\n") == 1
        assert from_line(type(message), line) == message


def test_a_newer_worker_may_say_more():
    line = b'{"type":"Hello","protocol":9,"stage":"s","python":"3","group":1,"mood":"good"}\n'
    assert from_line(Hello, line).protocol == 9


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"hello\n",
        b"{}\n",
        b"[1]\n",
        b"null\n",
        b'{"type":"Response","id":"1","reply":{"type":"Unknown"},"seconds":0}\n',
        b'{"type":"Response","id":1,"reply":null,"seconds":0}\n',
        b"\xff\xfe\n",
        b"[" * 100_000 + b"\n",
    ],
)
def test_other_lines_are_wire_errors(line: bytes):
    with pytest.raises(WireError):
        from_line(Response, line)
