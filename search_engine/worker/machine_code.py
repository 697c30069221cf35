"""Read machine code: registers, spills, widths and matrix instructions of one compiled kernel.

NVIDIA cubins go through the ``nvdisasm`` that Triton bundles; for AMD the compiler's own assembly
text is read. Spills are summed over the spill instructions in the code,
which equals what ``ptxas -v`` and LLVM report and is there for cached binaries too.
"""

from __future__ import annotations

import functools
import hashlib
import re
import struct
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

_TOOL_SECONDS = 60


@dataclass(frozen=True, slots=True)
class CodeFacts:
    """Per-thread figures of one kernel; the fields are those of ``domain.facts.LaunchFacts``."""

    registers: int
    spill_bytes: int
    tensor_instructions: int
    instructions: int
    widest_load_bytes: int


def binary_hash(elf: bytes) -> str:
    """SHA-256 of the code sections of an ELF file (cubin, hsaco), so that lines do not count."""
    digest = hashlib.sha256()
    for name, data in sorted(_sections(elf)):
        if name.startswith((".text", ".rodata")):
            digest.update(data)
    return digest.hexdigest()


@functools.lru_cache(maxsize=1024)
def nvidia(cubin: bytes) -> CodeFacts:
    """Facts of a cubin with one kernel."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        listing = _tool("nvdisasm", "-ndf", "-c", file.name)
    return from_sass(listing, registers_of_cubin(cubin))


_SIZED_VALUE = 4
_REGISTER_COUNT = 0x2F


def registers_of_cubin(cubin: bytes) -> int:
    """Registers per thread, as the driver reads them: the attribute EIATTR_REGCOUNT (symbol,
    count) of the section ``.nv.info``; 0 if it is not there.
    """
    counts: list[int] = []
    info = dict(_sections(cubin)).get(".nv.info", b"")
    position = 0
    while position + 4 <= len(info):
        form, attribute, size = struct.unpack_from("<BBH", info, position)
        position += 4
        if form == _SIZED_VALUE:
            if attribute == _REGISTER_COUNT and size == 8:
                counts.append(int(struct.unpack_from("<II", info, position)[1]))
            position += size
    return max(counts, default=0)


_SASS = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:\{\s*)?(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)", re.M)
_SASS_WIDTHS = {"256": 32, "128": 16, "64": 8, "U16": 2, "S16": 2, "U8": 1, "S8": 1}
_BULK_LOADS = ("UTMALDG", "UBLKCP")


def from_sass(listing: str, registers: int) -> CodeFacts:
    """Facts of an ``nvdisasm`` listing."""
    spill, tensor, count, widest = 0, 0, 0, 0
    for operation in _SASS.findall(listing):
        name = operation.partition(".")[0]
        if name == "NOP":
            continue
        count += 1
        if name.endswith("MMA"):
            tensor += 1
        elif name in ("LDL", "STL"):
            spill += _sass_width(operation)
        elif name in ("LDG", "LDGSTS"):
            widest = max(widest, _sass_width(operation))
        elif name in _BULK_LOADS:
            widest = max(widest, 16)
    return CodeFacts(registers, spill, tensor, count, widest)


def _sass_width(operation: str) -> int:
    for part in operation.split(".")[1:]:
        if part in _SASS_WIDTHS:
            return _SASS_WIDTHS[part]
    return 4


_AMD = re.compile(r"^\t((?:v|s|ds|global|buffer|flat|scratch|tensor)_\w+)", re.M)
_AMD_LOAD = re.compile(r"^(?:global|buffer|flat)_load_(?:lds_)?(\w+)")
_AMD_SPILL = re.compile(r"^scratch_(?:load|store)_(\w+)")
_AMD_WIDTHS = {
    "dwordx4": 16, "dwordx3": 12, "dwordx2": 8, "dword": 4, "b128": 16, "b96": 12, "b64": 8,
    "b32": 4,
}  # fmt: skip


def amd(assembly: str) -> CodeFacts:
    """Facts of the ``amdgcn`` text of one kernel; registers are vector registers."""
    spill, tensor, count, widest = 0, 0, 0, 0
    for operation in _AMD.findall(assembly):
        count += 1
        if operation.startswith(("v_mfma", "v_wmma", "v_smfmac", "v_swmmac")):
            tensor += 1
        elif load := _AMD_LOAD.match(operation):
            widest = max(widest, _amd_width(load.group(1)))
        elif access := _AMD_SPILL.match(operation):
            spill += _amd_width(access.group(1))
    registers = re.findall(r"\.vgpr_count:\s*(\d+)", assembly)
    return CodeFacts(max(map(int, registers), default=0), spill, tensor, count, widest)


def _amd_width(suffix: str) -> int:
    if suffix in _AMD_WIDTHS:
        return _AMD_WIDTHS[suffix]
    return 1 if "byte" in suffix or suffix.endswith("8") else 2


def _tool(name: str, *arguments: str) -> str:
    done = subprocess.run(
        [_tool_path(name), *arguments],
        capture_output=True,
        text=True,
        timeout=_TOOL_SECONDS,
        check=True,
    )
    return done.stdout


@functools.cache
def _tool_path(name: str) -> str:
    import triton.backends.nvidia as backend

    bundled = Path(str(backend.__file__)).parent / "bin" / name
    return str(bundled) if bundled.exists() else name


def _sections(elf: bytes) -> list[tuple[str, bytes]]:
    """Names and contents of the sections of a 64-bit little-endian ELF file."""
    if elf[:6] != b"\x7fELF\x02\x01":
        return [(".text", elf)]
    (table,) = struct.unpack_from("<Q", elf, 40)
    size, number, names_index = struct.unpack_from("<HHH", elf, 58)
    headers = [struct.unpack_from("<IIQQQQ", elf, table + size * i) for i in range(number)]
    names_start = headers[names_index][4]
    sections: list[tuple[str, bytes]] = []
    for name_offset, kind, _flags, _address, offset, length in headers:
        end = elf.index(b"\0", names_start + name_offset)
        name = elf[names_start + name_offset : end].decode()
        no_bits = 8  # SHT_NOBITS occupies no space in the file
        sections.append((name, b"" if kind == no_bits else elf[offset : offset + length]))
    return sections
