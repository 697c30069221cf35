"""A disassembler that is missing or fails costs the lines and says what to install."""

import types
from pathlib import Path

import pytest

from search_engine.worker import disassembler
from search_engine.worker.code_places import UserText
from search_engine.worker.disassembler import DisassemblerError, disassemble
from search_engine.worker.launch_code import KernelLaunch, launch_code

USER = UserText("/s/versions/0/kernels.py", "/k/kernels.py")


def script(path: Path, body: str) -> str:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def tools(monkeypatch):
    def use(*paths: str) -> None:
        disassemble.cache_clear()
        monkeypatch.setattr(disassembler, "disassemblers", lambda: paths)

    yield use
    disassemble.cache_clear()


def test_the_next_tool_is_tried_when_one_fails(tools, tmp_path):
    old = script(tmp_path / "old", "echo 'nvdisasm fatal : Invalid register count' >&2; exit 1")
    new = script(tmp_path / "new", "echo listing of; basename $4 | tail -c 7")
    tools(str(tmp_path / "gone"), old, new)
    assert disassemble(b"code") == "listing of\n.cubin\n"


def test_each_cubin_is_disassembled_once(tools, tmp_path):
    tools(script(tmp_path / "tool", f"echo x >> {tmp_path}/log; wc -l < {tmp_path}/log"))
    assert disassemble(b"code") == disassemble(b"code") == "1\n"
    assert disassemble(b"other") == "2\n"


def test_the_last_problem_and_the_remedy_are_told(tools, tmp_path):
    tools(script(tmp_path / "old", "echo warning >&2; echo 'Invalid register count' >&2; exit 1"))
    with pytest.raises(DisassemblerError, match=r"old` failed: Invalid register count.*install"):
        disassemble(b"code")
    tools()
    with pytest.raises(DisassemblerError, match=r"`nvdisasm` was not found.*nvidia-cuda-nvdisasm"):
        disassemble(b"code")


def test_a_launch_without_disassembler_has_no_lines_and_a_note(tools):
    tools()
    function = types.SimpleNamespace(__name__="kernel", params=())
    source = types.SimpleNamespace(fn=function, signature={}, constants={}, attrs={})
    metadata = types.SimpleNamespace(num_warps=4, num_stages=3, shared=0)
    ttgir = (
        "module {\n%d = tt.dot %l, %r, %a : tensor<16x16xf16, #o> * tensor<16x16xf16, #o> -> "
        'tensor<16x16xf32, #mma> loc("/k/kernels.py":9:1)\n}\n'
    )
    asm = {"cubin": b"no ELF", "ptx": "", "ttgir": ttgir}
    compiled = types.SimpleNamespace(asm=asm, src=source, metadata=metadata)
    code, rows = launch_code(KernelLaunch(compiled, (1, 1, 1), 3, ()), "", USER)
    assert (code.lines, rows) == ((), ())
    assert [dot.line for dot in code.dots] == [8]
    (note,) = code.notes
    assert "nvdisasm" in note
    assert "install" in note
