"""Let user code that speaks of ``cuda`` run without a device, on tensors that hold no data.

Tensors on ``cuda`` become *meta* tensors (or small CPU tensors, for entries that read values).
They still answer ``device``, ``is_cuda`` and ``data_ptr`` as tensors on a card would, so that
checks in the user's code pass and Triton specialises pointers as in a real launch.
"""

from __future__ import annotations

import contextlib
import types
from collections.abc import Generator
from typing import Any

from search_engine.worker.fake_driver import FakeCard

_DEVICE_TYPES = ("cuda", "hip")


def cuda_as(stand_in: str) -> Any:
    """A context in which ``cuda`` means the device ``stand_in`` (``meta`` or ``cpu``)."""
    import torch
    from torch.overrides import TorchFunctionMode

    tensor: Any = torch.Tensor
    card = torch.device("cuda", 0)
    constant_getters = {tensor.device: card, tensor.is_cuda: True, tensor.is_meta: False}
    constants = {getter.__get__: value for getter, value in constant_getters.items()}

    class CudaAsStandIn(TorchFunctionMode):
        def __torch_function__(
            self, func: Any, _types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            kwargs = dict(kwargs or {})
            standing_in = bool(args) and _stands_in(args[0], stand_in)
            if standing_in and func in constants:
                return constants[func]
            if standing_in and func is tensor.get_device:
                return 0
            if func is tensor.data_ptr and stand_in == "meta":
                return args[0].storage_offset() * args[0].element_size()
            if func is tensor.cuda:
                return args[0].to(stand_in)
            if func is tensor.pin_memory:
                return args[0]
            args = tuple(_mapped(torch, argument, stand_in) for argument in args)
            if "device" in kwargs:
                kwargs["device"] = _mapped(torch, kwargs["device"], stand_in)
            if "pin_memory" in kwargs:
                kwargs["pin_memory"] = False
            return func(*args, **kwargs)

    return CudaAsStandIn()


def install(card: FakeCard) -> None:
    """Replace what ``torch.cuda`` says about devices by figures of the card, for good."""
    import torch

    module: Any = torch.cuda
    for name, value in _answers(torch, card).items():
        setattr(module, name, value)
    if card.backend == "hip":
        version: Any = torch.version
        version.hip = version.hip or "6.4"


@contextlib.contextmanager
def installed(card: FakeCard) -> Generator[None]:
    """As ``install``, for the length of a context."""
    import torch

    module: Any = torch.cuda
    before = {
        name: getattr(module, name) for name in _answers(torch, card) if hasattr(module, name)
    }
    install(card)
    try:
        yield
    finally:
        for name in _answers(torch, card):
            if name in before:
                setattr(module, name, before[name])
            else:
                delattr(module, name)


def _stands_in(value: Any, stand_in: str) -> bool:
    import torch

    if not isinstance(value, torch.Tensor):
        return False
    with torch._C.DisableTorchFunction():
        return value.device.type == stand_in


def _mapped(torch: Any, value: Any, stand_in: str) -> Any:
    if isinstance(value, torch.device) and value.type in _DEVICE_TYPES:
        return torch.device(stand_in)
    if isinstance(value, str) and value.partition(":")[0] in _DEVICE_TYPES:
        return stand_in
    return value


def _answers(torch: Any, card: FakeCard) -> dict[str, Any]:
    properties = _properties(card)
    stream = _Quiet(cuda_stream=0, device_index=0, stream_id=0)
    return {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "is_bf16_supported": lambda *_a, **_k: True,
        "init": _no_effect(),
        "_lazy_init": _no_effect(),
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "set_device": _no_effect(),
        "synchronize": _no_effect(),
        "empty_cache": _no_effect(),
        "get_device_name": lambda *_a: card.name,
        "get_device_capability": lambda *_a: card.capability,
        "get_device_properties": lambda *_a: properties,
        "current_stream": lambda *_a: stream,
        "default_stream": lambda *_a: stream,
        "set_stream": _no_effect(),
        "is_current_stream_capturing": lambda: False,
        "mem_get_info": lambda *_a: (card.memory_bytes, card.memory_bytes),
        "memory_allocated": lambda *_a: 0,
        "max_memory_allocated": lambda *_a: 0,
        "reset_peak_memory_stats": _no_effect(),
        "manual_seed": _no_effect(),
        "manual_seed_all": _no_effect(),
        "device": _Quiet,
        "device_of": _Quiet,
        "stream": _Quiet,
        "Stream": _Quiet,
        "Event": _Quiet,
        "_device": _Quiet,
        "_DeviceGuard": _Quiet,
    }


def _properties(card: FakeCard) -> types.SimpleNamespace:
    major, minor = card.capability
    return types.SimpleNamespace(
        name=card.name,
        major=major,
        minor=minor,
        multi_processor_count=card.processors,
        total_memory=card.memory_bytes,
        warp_size=card.warp_size,
        L2_cache_size=card.l2_bytes,
        max_threads_per_multi_processor=card.threads_per_processor,
        max_threads_per_block=1024,
        regs_per_multiprocessor=65536,
        shared_memory_per_block=49152,
        shared_memory_per_block_optin=card.shared_bytes,
        shared_memory_per_multiprocessor=card.shared_bytes + 1024,
        gcnArchName=str(card.arch),
        uuid="",
    )


def _nothing(*_arguments: Any, **_options: Any) -> None:
    """Stands for a call that has no effect without a device."""


def _no_effect() -> Any:
    """As ``_nothing``, another function each time: torch's compiler refuses one under two names."""
    return lambda *_arguments, **_options: None


class _Quiet:
    """A device guard, stream or event: any method does nothing, and it is its own context."""

    def __init__(self, *_arguments: Any, **attributes: Any) -> None:
        self.__dict__.update(attributes)
        self.idx = self.prev_idx = 0

    def __enter__(self) -> _Quiet:
        return self

    def __exit__(self, *_error: object) -> None:
        return None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _nothing
