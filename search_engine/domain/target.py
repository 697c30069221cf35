"""Targets (architectures) and devices (physical cards)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """One number about a target, with its unit and where it was read."""

    value: float
    unit: str
    source: str


@dataclass(frozen=True, slots=True)
class Target:
    """An accelerator architecture that can be compiled for without a device.

    ``backend`` and ``arch`` are Triton's (``cuda``/``90``, ``hip``/``gfx942``).
    """

    name: str
    vendor: str
    backend: str
    arch: str
    warp_size: int
    processors: int
    """Streaming multiprocessors or compute units of the usual card."""
    warps_per_processor: int
    blocks_per_processor: int
    registers_per_processor: int
    registers_per_thread: int
    shared_bytes_per_processor: int
    shared_bytes_per_block: int
    shared_reserved_bytes: int
    memory_bandwidth: Figure
    """Datasheet bytes per second; the physical floor only."""
    matrix_rate: Figure
    """Datasheet dense 16-bit floating-point operations per second; the physical floor only."""
    vector_rate: Figure
    """Datasheet fp32 operations per second outside the matrix unit."""
    l2_bytes: int
    fp64_ratio: float
    """fp64 rate over fp32 rate."""


@dataclass(frozen=True, slots=True)
class Device:
    """One physical card, as a worker found it."""

    name: str
    uuid: str
    target: str
    memory_bytes: int
    processors: int
    l2_bytes: int
    driver: str


@dataclass(frozen=True, slots=True)
class Environment:
    """What a measurement depends on besides the code."""

    device: str | None
    driver: str | None
    python: str
    torch: str
    triton: str
    target: str

    @property
    def key(self) -> str:
        """Stable text key for the archive."""
        parts = (self.device or "no device", self.driver or "-", self.torch, self.triton)
        return " | ".join((*parts, self.target))
