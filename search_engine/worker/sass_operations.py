"""What an NVIDIA instruction does, and how many bytes a thread it moves."""

from __future__ import annotations

import re

from search_engine.domain.code import MachineOperation as Op
from search_engine.worker.sass import Instruction

_BY_NAME = {
    Op.GLOBAL_LOAD: "LDG LD",
    Op.GLOBAL_STORE: "STG ST UTMASTG",
    Op.ASYNC_COPY: "LDGSTS UTMALDG UBLKCP",
    Op.SHARED_LOAD: "LDS LDSM",
    Op.SHARED_STORE: "STS STSM",
    Op.LOCAL_LOAD: "LDL",
    Op.LOCAL_STORE: "STL",
    Op.ATOMIC: "ATOM ATOMG ATOMS RED REDG UTMAREDG",
    Op.FP32: "FADD FMUL FFMA FADD2 FMUL2 FFMA2 FMNMX FMNMX3 FADD3",
    Op.FP64: "DADD DMUL DFMA DSETP DMNMX",
    Op.SPECIAL: "MUFU",
    Op.CONVERSION: "F2F F2I I2F I2FP F2FP F2IP I2I I2IP",
    Op.SHUFFLE: "SHFL REDUX CREDUX",
    Op.BARRIER: "BAR UCGABAR_ARV UCGABAR_WAIT",
    Op.BRANCH: "BRA BRX BRXU JMP JMX JMXU CALL RET",
}  # fmt: skip
_OPERATIONS = {name: kind for kind, names in _BY_NAME.items() for name in names.split()}

MEMORY = (
    Op.GLOBAL_LOAD, Op.GLOBAL_STORE, Op.ASYNC_COPY, Op.SHARED_LOAD, Op.SHARED_STORE,
    Op.SPILL_LOAD, Op.SPILL_STORE, Op.LOCAL_LOAD, Op.LOCAL_STORE, Op.CONSTANT_LOAD,
    Op.ATOMIC, Op.ATOMIC_CAS,
)  # fmt: skip
"""Classes whose width is counted."""

_BULK = ("UTMALDG", "UTMASTG", "UTMAREDG", "UBLKCP")
_BULK_BYTES = 16
"""A bulk copy has no width a thread; it moves lines as the widest access does."""

_MATRIX_ACCESS_BYTES = {"4": 16, "2": 8}
"""LDSM and STSM move one register a thread for each 8x8 matrix."""

_WIDTHS = {"256": 32, "128": 16, "64": 8, "U16": 2, "S16": 2, "U8": 1, "S8": 1}

_PACKED = re.compile(r"B?F(\d+)x(\d+)")
"""Element bits and count of a vector atomic: ``F16x2``, ``F32x4``."""

_INDEXED_CONSTANT = re.compile(r"\]\[R\d+")
_DIVISION = re.compile(r"__cuda_sm\d+_(?:div|rem)_[su]\d+")


def operation(item: Instruction) -> Op:
    """The class of an instruction; local memory is not yet told from spills."""
    name = item.name
    if name.endswith("MMA"):
        return Op.MATRIX
    if name == "LDC":
        return Op.CONSTANT_LOAD if _INDEXED_CONSTANT.search(item.operands) else Op.OTHER
    if name == "HADD2" and "F32" in item.parts:
        return Op.CONVERSION  # half to single, written as an addition of zero
    if name == "CALL" and _DIVISION.search(item.operands):
        return Op.INTEGER_DIVISION
    found = _OPERATIONS.get(name, Op.OTHER)
    if found is Op.ATOMIC and any(part.startswith("CAS") for part in item.parts):
        return Op.ATOMIC_CAS
    return found


def width_bytes(item: Instruction) -> int:
    """Bytes a thread of a memory instruction."""
    if item.name in _BULK:
        return _BULK_BYTES
    if item.name in ("LDSM", "STSM"):
        return _MATRIX_ACCESS_BYTES.get(item.parts[-1] if item.parts else "", 4)
    for part in item.parts:
        if part in _WIDTHS:
            return _WIDTHS[part]
        if packed := _PACKED.fullmatch(part):
            return int(packed[1]) // 8 * int(packed[2])
    return 4
