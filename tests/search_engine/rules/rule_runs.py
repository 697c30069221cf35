"""Runs of rewritten files for the tests of rules: on Triton's interpreter, and compiled for sm_90.

Both start one process for many cases, since importing torch takes two seconds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from search_engine.domain.candidate import Rewrite, apply_edits
from search_engine.domain.workload import (
    Case,
    Distribution,
    Extent,
    ScalarArgument,
    TensorArgument,
    Values,
    Workload,
    WorkloadSource,
)
from search_engine.frontends.triton import parse_module
from search_engine.rules._base import Rule, Subject
from search_engine.rules._subject import make_subject
from search_engine.targets.nvidia_sm90 import TARGET

EXAMPLES = Path(__file__).parents[3] / "examples"
HEADER = "import torch\nimport triton\nimport triton.language as tl\n\n\n"


def tensor(name: str, dtype: str, *shape: int) -> TensorArgument:
    """A contiguous argument of a workload."""
    extents = tuple(Extent(size) for size in shape)
    return TensorArgument(name, dtype, extents, Values(Distribution.NORMAL, (1.0, 0.0)))


def subject_of(
    text: str, *arguments: TensorArgument | ScalarArgument, kernel: int = 0
) -> Subject | None:
    """What a rule sees of the file's kernel number ``kernel`` with one case."""
    module = parse_module(text, "kernel.py")
    unit = module.units[kernel]
    assert unit.entry is not None
    workload = Workload(unit.entry.name, WorkloadSource.DECLARED, (Case(arguments),))
    return make_subject(module, unit, workload, TARGET)


def offered(
    rule: Rule, text: str, *arguments: TensorArgument | ScalarArgument
) -> tuple[Rewrite, ...]:
    """What the rule offers for the file's first kernel."""
    subject = subject_of(text, *arguments)
    return () if subject is None else rule.rewrites(subject)


def rewritten(rule: Rule, text: str, *arguments: TensorArgument | ScalarArgument) -> str:
    """The file after the only rewrite that the rule offers."""
    (rewrite,) = offered(rule, text, *arguments)
    return apply_edits(text, rewrite.edits)


@dataclass(frozen=True, slots=True)
class RunCase:
    """A file, its entry, torch expressions for the arguments, and the expected result.

    ``arguments`` are expressions over ``torch`` and ``g`` (a seeded generator); ``expected`` sees
    them as ``x[0]``, ``x[1]``, ...
    """

    name: str
    text: str
    entry: str
    arguments: tuple[str, ...]
    expected: str
    exact: bool = False


def interpret(cases: list[RunCase], folder: Path) -> dict[str, str]:
    """Run the cases on the interpreter; ``{name: what went wrong}`` of those that failed."""
    return _run(_INTERPRET, cases, folder, {"TRITON_INTERPRET": "1"})


def compile_native(cases: list[RunCase], folder: Path) -> dict[str, str]:
    """Compile what the entries launch for sm_90, running nothing; failures by name."""
    return _run(_COMPILE, cases, folder, {"TRITON_CACHE_DIR": str(folder / "cache")})


def _run(
    script: str, cases: list[RunCase], folder: Path, settings: dict[str, str]
) -> dict[str, str]:
    plans: list[dict[str, object]] = []
    for number, case in enumerate(cases):
        path = folder / f"case_{number}.py"
        path.write_text(case.text)
        plans.append(
            {
                "name": case.name,
                "path": str(path),
                "entry": case.entry,
                "arguments": case.arguments,
                "expected": case.expected,
                "exact": case.exact,
            }
        )
    done = subprocess.run(
        [sys.executable, "-c", script],
        input=json.dumps(plans),
        capture_output=True,
        text=True,
        timeout=200,
        env={**os.environ, **settings},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


_COMMON = """
import importlib.util, json, sys, traceback
import torch

def load(path, count):
    spec = importlib.util.spec_from_file_location(f"case_{count}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module

def arguments(plan):
    g = torch.Generator().manual_seed(7)
    return [eval(text, {"torch": torch, "g": g}) for text in plan["arguments"]]
"""

_INTERPRET = (
    _COMMON
    + """
from triton.runtime import interpreter

# Triton 3.6 turns one-element arrays into integers in a way that numpy 2.4 refuses.
patch_tensor = interpreter._patch_lang_tensor

def patch_index(tensor, scope):
    patch_tensor(tensor, scope)
    scope.set_attr(tensor, "__index__", lambda self: self.handle.data.item())

interpreter._patch_lang_tensor = patch_index
failures = {}
for count, plan in enumerate(json.load(sys.stdin)):
    try:
        x = arguments(plan)
        got = getattr(load(plan["path"], count), plan["entry"])(*x)
        want = eval(plan["expected"], {"torch": torch, "x": x})
        if got.shape != want.shape:
            failures[plan["name"]] = f"shape {tuple(got.shape)} instead of {tuple(want.shape)}"
        elif plan["exact"] or not got.is_floating_point():
            if not torch.equal(got.to(want.dtype), want):
                failures[plan["name"]] = "not equal"
        elif not torch.allclose(got.double(), want.double(), rtol=1e-5, atol=1e-5 * max(
            1.0, float(want.abs().max()) if want.numel() else 1.0)):
            failures[plan["name"]] = f"off by {float((got - want).abs().max())}"
    except Exception:
        failures[plan["name"]] = traceback.format_exc()[-1500:]
print()
print(json.dumps(failures))
"""
)

_COMPILE = (
    """
import torch
from triton.backends.compiler import GPUTarget
from triton.runtime import driver

LAUNCHED = []

class Launcher:
    def __init__(self, src, metadata):
        self.metadata = metadata
    def __call__(self, x, y, z, stream, function, *rest):
        LAUNCHED.append((self.metadata, (x, y, z)))

class Utils:
    def load_binary(self, *rest):
        return 1, 1, 0, 0, 1024
    def get_device_properties(self, device):
        limits = dict(max_shared_mem=232448, max_num_regs=65536)
        return dict(limits, multiprocessor_count=132, warpSize=32)
    def unload_module(self, *rest):
        pass

class Driver:
    launcher_cls, utils = Launcher, Utils()
    def get_current_target(self):
        return GPUTarget("cuda", 90, 32)
    def get_current_device(self):
        return 0
    def get_current_stream(self, device=None):
        return 0
    def set_current_device(self, device):
        pass
    def get_active_torch_device(self):
        return torch.device("cpu")
    def get_device_interface(self):
        return torch.cpu

driver.set_active(Driver())
"""
    + _COMMON
    + """
failures = {}
for count, plan in enumerate(json.load(sys.stdin)):
    LAUNCHED.clear()
    try:
        getattr(load(plan["path"], count), plan["entry"])(*arguments(plan))
        if not LAUNCHED:
            failures[plan["name"]] = "launched nothing"
        for metadata, grid in LAUNCHED:
            if metadata.shared > 232448 or max(grid[1:]) > 65535:
                failures[plan["name"]] = f"{metadata.shared} bytes of shared memory, grid {grid}"
    except Exception:
        failures[plan["name"]] = traceback.format_exc()[-1500:]
print()
print(json.dumps(failures))
"""
)
