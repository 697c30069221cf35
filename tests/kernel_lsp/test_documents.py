"""Incremental edits against a plain model, in three encodings and with every line end."""

from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_lsp.documents import Change, Document
from kernel_lsp.positions import Encoding, Position, Range, body, clean, split_lines, units

TEXT = st.text(alphabet="ab \n\r\t\x0cé😀\u2028", max_size=30)
ENCODING = st.sampled_from(list(Encoding))


def document(text):
    return Document.opened("file:///k.py", "/k.py", "/", 1, text)


def place(draw, lines, encoding):
    """A position between two signs of a line."""
    line = draw(st.integers(0, len(lines) - 1))
    column = draw(st.integers(0, len(body(lines[line]))))
    before = lines[line][:column]
    offset = sum(len(item) for item in lines[:line]) + column
    return Position(line, units(before, encoding)), offset


@given(st.data(), TEXT, ENCODING)
@settings(max_examples=300, deadline=None)
def test_edits_give_the_text_of_the_model(data, text, encoding):
    held = document(text)
    for version in range(2, 5):
        lines = split_lines(text)
        start, first = place(data.draw, lines, encoding)
        end, last = place(data.draw, lines, encoding)
        if last < first:
            start, end, first, last = end, start, last, first
        new = data.draw(TEXT)
        text = text[:first] + new + text[last:]
        held.apply(version, (Change(Range(start, end), new),), encoding)
        assert held.text == text
        assert held.lines == split_lines(text)


@given(TEXT)
def test_lines_are_those_of_the_protocol(text):
    lines = split_lines(text)
    assert "".join(lines) == text
    ends = text.replace("\r\n", "\n").replace("\r", "\n").count("\n")
    assert len(lines) == ends + 1


def test_a_form_feed_is_no_line_end():
    assert split_lines("a\x0cb\nc") == ["a\x0cb\n", "c"]


def test_positions_past_the_end_are_the_end():
    held = document("ab\ncd")
    far = Position(99, 99)
    held.apply(2, (Change(Range(far, far), "!"),), Encoding.UTF16)
    held.apply(3, (Change(Range(Position(0, 50), Position(0, 60)), "?"),), Encoding.UTF16)
    assert held.text == "ab?\ncd!"


def test_a_column_inside_a_sign_is_before_it():
    held = document("😀x")
    middle = Position(0, 1)
    held.apply(2, (Change(Range(middle, middle), "a"),), Encoding.UTF16)
    assert held.text == "a😀x"


def test_several_changes_of_one_message_build_on_each_other():
    held = document("one\ntwo\n")
    first = Change(Range(Position(0, 0), Position(0, 0)), "zero\n")
    second = Change(Range(Position(1, 0), Position(1, 3)), "ONE")
    held.apply(2, (first, second), Encoding.UTF8)
    assert held.text == "zero\nONE\ntwo\n"


def test_lone_surrogates_are_replaced():
    assert clean("a\ud800b") == "a\ufffdb"
    assert document("x\udfff").text == "x\ufffd"


def test_lines_of_an_analysis_follow_the_edits_since():
    held = document("0\n1\n2\n3\n4\n")
    held.apply(2, (Change(Range(Position(1, 0), Position(1, 0)), "a\nb\n"),), Encoding.UTF8)
    held.apply(3, (Change(Range(Position(5, 0), Position(6, 0)), ""),), Encoding.UTF8)
    assert [held.lines[held.current_line(n, 1)] for n in (0, 2, 4)] == ["0\n", "2\n", "4\n"]
    assert [held.line_then(n, 1) for n in (0, 4)] == [0, 2]
    held.forget_shifts(2)
    assert held.current_line(6, 2) == 5
