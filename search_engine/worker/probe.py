"""What this interpreter has: versions of torch and Triton, devices, and what is missing."""

from __future__ import annotations

import contextlib
import importlib
import platform
import sys
from typing import Any

from search_engine.domain.job import ProbeJob, ProbeReply
from search_engine.domain.target import Device
from search_engine.worker.loader import missing_module

_NEEDED = ("torch", "triton")


def probe(_job: ProbeJob) -> ProbeReply:
    """Import torch and Triton and list the devices. A missing module is a problem, not an error."""
    versions: dict[str, str] = {}
    problems: list[str] = []
    for name in _NEEDED:
        try:
            versions[name] = str(getattr(importlib.import_module(name), "__version__", "unknown"))
        except ModuleNotFoundError as error:
            problems.append(missing_module(error.name or name).message)
        except (ImportError, OSError) as error:
            problems.append(f"`{name}` in {sys.executable} cannot be imported: {error}")
    return ProbeReply(
        executable=sys.executable,
        python=platform.python_version(),
        torch=versions.get("torch", ""),
        triton=versions.get("triton", ""),
        devices=devices() if len(versions) == len(_NEEDED) else (),
        problems=tuple(problems),
    )


def import_warm(names: tuple[str, ...]) -> tuple[str, ...]:
    """Import modules ahead of the first job, without touching a device; those that are there."""
    found: list[str] = []
    for name in names:
        with contextlib.suppress(ImportError, OSError):
            importlib.import_module(name)
            found.append(name)
    return tuple(found)


def devices() -> tuple[Device, ...]:
    """The cards that torch sees, in torch's order. Creates a device context if there are any."""
    import torch

    if not torch.cuda.is_available():
        return ()
    return tuple(_device(torch, index) for index in range(torch.cuda.device_count()))


def _device(torch: Any, index: int) -> Device:
    properties = torch.cuda.get_device_properties(index)
    if torch.version.hip:
        target = properties.gcnArchName.partition(":")[0]
        driver = str(torch.version.hip)
    else:
        target = f"sm_{properties.major * 10 + properties.minor}"
        driver = _cuda_driver()
    return Device(
        name=properties.name,
        uuid=str(getattr(properties, "uuid", "")) or f"{properties.name}#{index}",
        target=target,
        memory_bytes=int(properties.total_memory),
        processors=int(properties.multi_processor_count),
        l2_bytes=int(getattr(properties, "L2_cache_size", 0)),
        driver=driver,
    )


def _cuda_driver() -> str:
    """The kernel driver's version, or the driver library's if /proc does not tell."""
    with contextlib.suppress(OSError, IndexError):
        with open("/proc/driver/nvidia/version") as file:  # noqa: PTH123
            words = file.readline().split()
        return next(word for word in words if word[:1].isdigit() and "." in word)
    return "unknown"
