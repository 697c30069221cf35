"""Every example computes what its declared reference says, at small and odd shapes.

The kernels run under Triton's interpreter, which must be chosen before they are decorated: this
file is also the script of a child process, one for each folder of examples, which prints one line
of JSON for each case. bfloat16 arithmetic is wrong in the interpreter, so examples made for it
are run with float32 and float16.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FOLDERS = {"naive": EXAMPLES, "tuned": EXAMPLES / "tuned", "controls": EXAMPLES / "controls"}
DECLARATION = re.compile(r"^# kernel-lsp: (\w+) (.*)$", re.MULTILINE)

TOLERANCE = {"f32": 2e-5, "f16": 2e-3, "i32": 0.0, "u8": 0.0}
"""Largest error allowed, relative to the largest magnitude of the output. Inputs have unit scale
and the longest sum has 8200 terms, so float32 stays two digits below its bound; float16 is
accumulated in float32 and rounded once (2 ** -11)."""

ROPE = [
    "x=f32[2,7,3,10] cos=f32[7,5] sin=f32[7,5]",
    "x=f16[1,5,33,64] cos=f32[5,32] sin=f32[5,32]",
    "x=f32[3,1,1,2] cos=f32[1,1] sin=f32[1,1]",
]
CASES = {
    "softmax": ["x=f32[5,300]", "x=f16[3,17]", "x=f32[2,1]"],
    "layer_norm": ["x=f32[5,300] w=f32[300] b=f32[300]", "x=f16[3,17] w=f16[17] b=f16[17]"],
    "rms_norm": ["x=f32[5,300] w=f32[300]", "x=f16[3,17] w=f16[17]"],
    "rope": ROPE,
    "cross_entropy": [
        "logits=f32[5,5003] targets=i64[5]{0..5002}",
        "logits=f16[3,17] targets=i64[3]{0..16}",
    ],
    "row_sum": ["x=f32[5,300]", "x=f16[3,17]", "x=f32[1,8200]"],
    "column_sum": ["x=f32[1300,7]", "x=f16[17,131]", "x=f32[1,1]"],
    "transpose": ["x=f32[67,130]", "x=f16[3,17]", "x=f32[1,1]"],
    "matmul": [
        "a=f32[67,130] b=f32[130,35]",
        "a=f16[3,17] b=f16[17,5]",
        "a=f32[577,10] b=f32[10,70]",
    ],
    "histogram": ["x=i32[20011]{0..255}", "x=i32[7]{0..255}", "x=i32[3000]{17..17}"],
    "swiglu": ["gate=f32[5,300] up=f32[5,300]", "gate=f16[3,17] up=f16[3,17]"],
    "gather": [
        "table=f32[11,1100] ids=i64[7]{0..10}",
        "table=f16[5,17] ids=i64[13]{0..4}",
    ],
    "cumsum": ["x=f32[5,300]", "x=f16[3,17]", "x=f32[1,8200]"],
    "vector_add": ["x=f32[5003] y=f32[5003]", "x=f16[7] y=f16[7]"],
    "grouped_matmul": [
        "a=f32[67,130] b=f32[130,35]",
        "a=f16[40,64] b=f16[64,9]",
        "a=f32[1153,10] b=f32[10,257]",
    ],
    "add_rms_norm": [
        "x=f32[5,300] residual=f32[5,300] w=f32[300]",
        "x=f16[3,17] residual=f16[3,17] w=f16[17]",
    ],
}


def example_files(folder: str) -> list[Path]:
    return sorted(FOLDERS[folder].glob("*.py"))


ALL = [
    pytest.param(folder, path.stem, id=f"{folder}-{path.stem}")
    for folder in FOLDERS
    for path in example_files(folder)
]


@pytest.fixture(scope="module")
def results() -> dict[tuple[str, str], list[dict]]:
    """What each case said, by folder and example; the folders run side by side."""
    environment = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    children = {
        folder: subprocess.Popen(
            [sys.executable, __file__, folder],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for folder in FOLDERS
    }
    said: dict[tuple[str, str], list[dict]] = {}
    for folder, child in children.items():
        out, err = child.communicate(timeout=200)
        for line in out.splitlines():
            case = json.loads(line)
            said.setdefault((folder, case["name"]), []).append(case)
        assert child.returncode == 0, f"{folder}: {out[-500:]}\n{err[-3000:]}"
    return said


@pytest.mark.parametrize(("folder", "name"), ALL)
def test_matches_its_reference(folder: str, name: str, results) -> None:
    cases = results[folder, name]
    assert len(cases) == len(CASES[name])
    for case in cases:
        assert "failure" not in case, f"{case['case']}:\n{case['failure']}"
        assert case["error"] <= TOLERANCE[case["dtype"]], case


@pytest.mark.parametrize("name", [path.stem for path in example_files("naive")])
def test_twin_has_the_same_signature_and_workload(name: str) -> None:
    naive = (FOLDERS["naive"] / f"{name}.py").read_text()
    tuned = (FOLDERS["tuned"] / f"{name}.py").read_text()
    entry = re.compile(rf"^def {name}\((.*?)\) -> .*?:$", re.MULTILINE | re.DOTALL)
    assert entry.search(naive)
    assert entry.search(naive)[0] == entry.search(tuned)[0]
    assert DECLARATION.findall(naive) == DECLARATION.findall(tuned)


@pytest.mark.parametrize(("folder", "name"), ALL)
def test_declares_a_workload_directly_above_the_entry(folder: str, name: str) -> None:
    lines = (FOLDERS[folder] / f"{name}.py").read_text().splitlines()
    row = next(i for i, line in enumerate(lines) if line.startswith(f"def {name}("))
    keywords = []
    while found := DECLARATION.match(lines[row - 1]):
        keywords.append(found[1])
        row -= 1
    assert keywords.count("reference") == 1
    assert "workload" in keywords


# What follows runs in the child.


def run_folder(folder: str) -> None:
    import traceback

    accept_scalar_tensors_as_loop_bounds()
    for path in example_files(folder):
        for case in CASES[path.stem]:
            print(f"{folder}/{path.stem} {case}", file=sys.stderr, flush=True)
            try:
                outcome = run_case(path, case)
            except Exception:  # noqa: BLE001 - whatever an example raises is the outcome
                outcome = {"failure": traceback.format_exc()}
            print(json.dumps({"name": path.stem, "case": case, **outcome}), flush=True)


def run_case(path: Path, case: str) -> dict[str, object]:
    import torch

    source = path.read_text()
    arguments = make_arguments(case)
    before = {name: tensor.clone() for name, tensor in arguments.items()}
    entry = getattr(load(path), path.stem)
    got = as_tuple(entry(**arguments))
    for name, tensor in arguments.items():
        assert torch.equal(tensor, before[name]), f"{name} was written to"

    scope = {**defaults(entry), **{name: widen(tensor) for name, tensor in arguments.items()}}
    expression = dict(DECLARATION.findall(source))["reference"]
    want = as_tuple(eval(expression, {"torch": torch}, scope))
    first = next(iter(arguments.values()))
    error = 0.0
    assert len(got) == len(want)
    for mine, right in zip(got, want, strict=True):
        assert mine.shape == right.shape
        expected = {"histogram": torch.int32, "cross_entropy": torch.float32}
        assert mine.dtype == expected.get(path.stem, first.dtype)
        scale = right.abs().max().item() or 1.0
        error = max(error, (mine.double() - right.double()).abs().max().item() / scale)
    assert error == error, "NaN"
    return {"error": error, "dtype": case.split("=")[1].split("[")[0]}


def accept_scalar_tensors_as_loop_bounds() -> None:
    """Let ``range(0, n, BLOCK)`` take interpreted scalars under NumPy 2.4 and later.

    The interpreter of Triton 3.6 holds a scalar as an array of one element and calls ``int`` on
    it, which NumPy 2.4 refuses.
    """
    from triton.runtime import interpreter

    patch_tensor = interpreter._patch_lang_tensor

    def patch(tensor, scope) -> None:
        patch_tensor(tensor, scope)
        tensor.__index__ = lambda self: int(self.handle.data.item())

    interpreter._patch_lang_tensor = patch


def load(path: Path):
    import importlib.util

    spec = importlib.util.spec_from_file_location(f"example_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def make_arguments(case: str) -> dict:
    """The tensors of a declaration; floats are normal, integers need ``{low..high}``."""
    import torch

    dtypes = {"f32": torch.float32, "f16": torch.float16, "i32": torch.int32, "i64": torch.int64}
    generator = torch.Generator().manual_seed(0)
    pattern = re.compile(r"(\w+)=(\w+)\[([\d,]+)\](?:\{(\d+)\.\.(\d+)\})?")
    made = {}
    for name, dtype, dims, low, high in pattern.findall(case):
        shape = [int(dim) for dim in dims.split(",")]
        if low:
            made[name] = torch.randint(int(low), int(high) + 1, shape, generator=generator)
        else:
            made[name] = torch.randn(shape, generator=generator)
        made[name] = made[name].to(dtypes[dtype])
    return made


def defaults(entry) -> dict[str, object]:
    import inspect

    parameters = inspect.signature(entry).parameters.values()
    return {p.name: p.default for p in parameters if p.default is not p.empty}


def widen(tensor):
    return tensor.double() if tensor.is_floating_point() else tensor


def as_tuple(value) -> tuple:
    return value if isinstance(value, tuple) else (value,)


if __name__ == "__main__":
    run_folder(sys.argv[1])
