"""A Triton driver that compiles for any target and launches nothing.

With it active, the user's unmodified launch code runs through Triton's own binding,
specialisation and compilation, and each launch is noted with its evaluated grid. One process
serves one target: Triton caches compiled kernels by device number alone.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any

from search_engine.worker.machine_code import amd, registers_of_cubin

_MOST_LAUNCHES = 256


@dataclass(frozen=True, slots=True)
class FakeCard:
    """What user code may ask about the card of a target, as the usual product reports it."""

    name: str
    backend: str
    arch: int | str
    warp_size: int
    processors: int
    shared_bytes: int
    """Most dynamic shared memory of one block."""
    memory_bytes: int
    l2_bytes: int
    threads_per_processor: int

    @property
    def capability(self) -> tuple[int, int]:
        """As torch reports it; ROCm builds answer with the gfx number's digits."""
        if isinstance(self.arch, int):
            return divmod(self.arch, 10)
        return int(self.arch[3]), int(self.arch[4])


_GIB = 1024**3
_MIB = 1024**2

CARDS = {
    "sm_80": FakeCard("NVIDIA A100", "cuda", 80, 32, 108, 166912, 80 * _GIB, 40 * _MIB, 2048),
    "sm_86": FakeCard("NVIDIA A10", "cuda", 86, 32, 72, 101376, 24 * _GIB, 6 * _MIB, 1536),
    "sm_89": FakeCard("NVIDIA L40S", "cuda", 89, 32, 142, 101376, 48 * _GIB, 96 * _MIB, 1536),
    "sm_90": FakeCard("NVIDIA H100", "cuda", 90, 32, 132, 232448, 80 * _GIB, 50 * _MIB, 2048),
    "sm_100": FakeCard("NVIDIA B200", "cuda", 100, 32, 148, 232448, 180 * _GIB, 126 * _MIB, 2048),
    "sm_120": FakeCard("RTX PRO 6000", "cuda", 120, 32, 188, 101376, 96 * _GIB, 128 * _MIB, 1536),
    "gfx90a": FakeCard("MI250X", "hip", "gfx90a", 64, 110, 65536, 64 * _GIB, 8 * _MIB, 2048),
    "gfx942": FakeCard("MI300X", "hip", "gfx942", 64, 304, 65536, 192 * _GIB, 4 * _MIB, 2048),
    "gfx950": FakeCard("MI350X", "hip", "gfx950", 64, 256, 163840, 288 * _GIB, 4 * _MIB, 2048),
}  # fmt: skip
"""By target name. Shared memory decides what compiles; the rest only answers user code."""


@dataclass(frozen=True, slots=True)
class CapturedLaunch:
    """One launch: the grid as evaluated, and Triton's compiled kernel.

    ``values`` has one text for each parameter, None for what is no number; ``stack`` is the call
    stack as (file, 1-based line), innermost first.
    """

    grid: tuple[int, int, int]
    compiled: Any
    values: tuple[str | None, ...]
    stack: tuple[tuple[str, int], ...]


@dataclass(slots=True)
class FakeDriver:
    """Everything that Triton 3.4 to 3.9 asks of an active driver."""

    card: FakeCard
    launches: list[CapturedLaunch] = field(default_factory=list)
    compiled: dict[str, Any] = field(default_factory=dict)
    """Triton's compiled kernels by hash."""
    stage_seconds: dict[str, tuple[tuple[str, float], ...]] = field(
        default_factory=dict[str, tuple[tuple[str, float], ...]]
    )
    """Times of the compiler's stages by the kernel's hash; nothing for one from Triton's cache."""

    @property
    def utils(self) -> FakeDriver:
        """Triton calls the loader through this name."""
        return self

    def launcher_cls(self, source: Any, metadata: Any) -> Any:
        """Make the function that a launch calls."""
        del source

        def launch(x: int, y: int, z: int, *arguments: Any) -> None:
            if len(self.launches) < _MOST_LAUNCHES:
                grid = (int(x), int(y), int(z))
                compiled = self.compiled[metadata.hash]
                bound = arguments[len(arguments) - len(compiled.src.fn.params) :]
                values = tuple(_number_text(value) for value in bound)
                self.launches.append(CapturedLaunch(grid, compiled, values, _stack()))

        return launch

    def load_binary(
        self, name: str, binary: bytes, shared: int, device: int
    ) -> tuple[int, int, int, int, int]:
        """Module, function, registers, spills, most threads of a block."""
        del name, shared, device
        return 1, 1, self._registers(binary), 0, 1024

    def _registers(self, binary: bytes) -> int:
        """Registers per thread: user code computes occupancies with them."""
        if self.card.backend == "cuda":
            return registers_of_cubin(binary)
        texts = [k.asm["amdgcn"] for k in self.compiled.values() if k.kernel == binary]
        return amd(texts[-1]).registers if texts else 0

    def unload_module(self, *_arguments: Any) -> None:
        """Nothing was loaded."""

    def get_device_properties(self, _device: int = 0) -> dict[str, int]:
        """The dictionary that Triton's own drivers return."""
        return {
            "max_shared_mem": self.card.shared_bytes,
            "multiprocessor_count": self.card.processors,
            "max_num_regs": 65536,
            "warpSize": self.card.warp_size,
            "sm_clock_rate": 1_500_000,
            "mem_clock_rate": 2_000_000,
            "mem_bus_width": 4096,
        }

    def get_current_target(self) -> Any:
        """Triton's description of the target."""
        from triton.backends.compiler import GPUTarget

        return GPUTarget(self.card.backend, self.card.arch, self.card.warp_size)

    def get_current_device(self) -> int:
        """The only device."""
        return 0

    def set_current_device(self, _device: int) -> None:
        """There is only one."""

    def get_current_stream(self, _device: int | None = None) -> int:
        """The default stream."""
        return 0

    def get_active_torch_device(self) -> Any:
        """The device that user code allocates on; it is mapped by ``fake_torch``."""
        import torch

        return torch.device("cuda", 0)

    def get_device_interface(self) -> Any:
        """torch.cuda, as replaced by ``fake_torch``."""
        import torch

        return torch.cuda

    def get_benchmarker(self) -> Any:
        """A benchmarker that runs nothing and finds everything equally fast."""
        return lambda _call, quantiles=None, **_options: [0.0] * len(quantiles or (0.5,))

    def get_empty_cache_for_benchmark(self) -> Any:
        """A buffer that nothing is going to use."""
        import torch

        return torch.empty(1)

    def clear_cache(self, cache: Any) -> None:
        """Nothing is timed."""

    def map_python_to_cpp_type(self, kind: str) -> str:
        """Only launchers that are compiled need it, and none is."""
        return kind


def install(card: FakeCard) -> FakeDriver:
    """Make a fake driver Triton's active one, and stop autotuners from benchmarking."""
    from triton.compiler.compiler import CompiledKernel
    from triton.runtime import driver

    fake = FakeDriver(card)
    original: Any = CompiledKernel.__init__

    def remember(self: Any, *arguments: Any, **options: Any) -> None:
        original(self, *arguments, **options)
        fake.compiled[self.hash] = self

    setattr(CompiledKernel, "__init__", remember)  # noqa: B010 (the stub calls it read-only)
    _listen(fake)
    stop_benchmarking()
    driver.set_active(fake)  # type: ignore[arg-type]
    return fake


def stop_benchmarking() -> None:
    """Let autotuned kernels take the first configuration that their own pruning leaves.

    Without a device there is nothing to benchmark: Triton would raise for want of a driver, also
    in its interpreter.
    """
    from triton.runtime.autotuner import Autotuner

    def run_benchmark(_self: Any, _key: Any, _configs: Any, benchmark: Any) -> bool:
        benchmark()  # never read or write timings on disk: none was measured
        return False

    setattr(Autotuner, "_bench", lambda *_a, **_k: [0.0, 0.0, 0.0])  # noqa: B010
    setattr(Autotuner, "check_disk_cache", run_benchmark)  # noqa: B010


def _listen(fake: FakeDriver) -> None:
    """Note the times of the compiler's stages, if this Triton tells them."""
    import triton

    knobs = getattr(getattr(triton, "knobs", None), "compilation", None)
    if not hasattr(knobs, "listener"):
        return
    earlier: Any = getattr(knobs, "listener")  # noqa: B009 (older stubs lack it)

    def listener(*, metadata: Any, times: Any, cache_hit: bool, **others: Any) -> None:
        if not cache_hit:
            stages = [("ir", times.ir_initialization), *times.lowering_stages]
            seconds = tuple((str(name), microseconds / 1e6) for name, microseconds in stages)
            fake.stage_seconds[str(metadata["hash"])] = seconds
        if earlier is not None:
            earlier(metadata=metadata, times=times, cache_hit=cache_hit, **others)

    setattr(knobs, "listener", listener)  # noqa: B010


def _number_text(value: Any) -> str | None:
    """An integer, float or truth value as Python writes it."""
    return repr(value) if isinstance(value, (bool, int, float)) else None


def _stack() -> tuple[tuple[str, int], ...]:
    """Where the launch comes from, innermost first, without frames of this file."""
    frames: list[tuple[str, int]] = []
    frame = sys._getframe(2)
    while frame is not None:
        frames.append((frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    return tuple(frames)
