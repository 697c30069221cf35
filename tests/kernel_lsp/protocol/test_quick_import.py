"""The protocol's types from the cache are the same as without it, whatever the cache holds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys
from pathlib import Path
if sys.argv[1] != "-":
    from kernel_lsp.protocol.quick_import import import_protocol
    import_protocol(Path(sys.argv[1]))
import attr._make
from lsprotocol import types
assert not hasattr(attr._make, "compile")
position = types.Position(line=3, character=4)
print(repr(types.Range(start=position, end=types.Position(5, 6))), position == types.Position(3, 4))
try:
    types.Position(line="x", character=4)
except (TypeError, ValueError) as error:
    print(error)
"""


def said(folder: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, folder], capture_output=True, text=True, check=True
    )
    return done.stdout


def test_types_from_the_cache_behave_as_without_it(tmp_path: Path) -> None:
    plain = said("-")
    assert said(str(tmp_path / "new")) == plain
    assert list((tmp_path / "new").iterdir()), "nothing was kept"
    assert said(str(tmp_path / "new")) == plain


@pytest.mark.parametrize("content", [b"", b"nonsense", b"i\x01\x00\x00\x00"])
def test_a_damaged_cache_is_made_again(tmp_path: Path, content: bytes) -> None:
    plain = said(str(tmp_path))
    (kept,) = tmp_path.iterdir()
    whole = kept.read_bytes()
    kept.write_bytes(content)
    assert said(str(tmp_path)) == plain
    assert kept.stat().st_size == len(whole)


def test_a_cache_that_cannot_be_written_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert said(str(tmp_path / "file" / "below")) == said("-")
