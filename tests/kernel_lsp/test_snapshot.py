"""Byte offsets to positions in each encoding, and what one analysis finds."""

import pytest

from kernel_lsp.positions import Encoding, Position
from kernel_lsp.snapshot import analyse

WIDE = "# é😀 kernel\r\nx = 1\x0c\n"


@pytest.mark.parametrize(
    ("encoding", "column"), [(Encoding.UTF8, 9), (Encoding.UTF16, 6), (Encoding.UTF32, 5)]
)
def test_columns_are_in_the_negotiated_encoding(encoding, column):
    found = analyse("file:///k.py", "/k.py", "/", 1, WIDE)
    offset = WIDE.encode().index(b"kernel")
    assert found.position(offset, encoding) == Position(0, column)
    assert found.position(WIDE.encode().index(b"x ="), encoding) == Position(1, 0)
    assert found.position(len(WIDE.encode()), encoding) == Position(2, 0)


def test_a_unit_knows_its_workload_and_its_lines(kernel):
    found = analyse("file:///k.py", "/k.py", "/", 1, kernel)
    (view,) = found.units
    assert view.name == "double_kernel" and view.workload.cases[0].label == "x=f32[1000]"
    assert view.refusal is None and view.syntax is None and view.problems == ()
    entry_line = kernel.splitlines().index("def double(x):")
    assert found.units_at(8, 8) == (view,)
    assert found.units_at(entry_line, entry_line) == (view,)
    assert found.units_at(0, 0) == ()


@pytest.mark.parametrize("cut", range(0, 480, 37))
def test_any_prefix_of_a_file_is_analysed(kernel, cut):
    found = analyse("file:///k.py", "/k.py", "/", 1, kernel[:cut])
    assert found.lines and found.text == kernel[:cut]
