"""Versions behave as the user's module does, side by side, and leave no trace."""

import inspect
import sys
from pathlib import Path

import pytest

from search_engine.domain.job import RefusalKind, Source
from search_engine.worker.loader import LoadError, entry, line_of, load, load_fresh


@pytest.fixture(autouse=True)
def _clean_imports(monkeypatch):
    """Each test's workspace is on the path, and its modules are known, during the test only."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        del sys.modules[name]


def make_source(root: Path, file: str, module: str, text: str, name: str = "run") -> Source:
    return Source("id", str(root), str(root / file), module, text, name)


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


@pytest.mark.parametrize("layout", ["", "src/"])
def test_relative_imports_constants_and_top_level_code_work(tmp_path: Path, layout: str):
    package = f"package_{'src' if layout else 'flat'}"
    write(
        tmp_path,
        {
            f"{layout}{package}/__init__.py": "",
            f"{layout}{package}/sizes.py": "BLOCK = 64\n",
            f"{layout}{package}/ops/__init__.py": "",
        },
    )
    text = (
        "from __future__ import annotations\n"
        "from ..sizes import BLOCK\n"
        f"import {package}.sizes as sizes\n"
        "from pathlib import Path\n"
        "TABLE = {n: n * BLOCK for n in range(3)}\n"
        "HERE = Path(__file__).name\n"
        "def run():\n"
        "    from ..sizes import BLOCK as late\n"
        "    return TABLE[2], late, sizes.BLOCK, HERE, __name__, __package__\n"
    )
    file, module = f"{layout}{package}/ops/kernels.py", f"{package}.ops.kernels"
    source = make_source(tmp_path, file, module, text)
    run = entry(load(source), source)
    assert run() == (128, 64, 64, "kernels.py", module, f"{package}.ops")


def test_a_script_finds_the_modules_beside_it(tmp_path: Path):
    write(tmp_path, {"bench/beside.py": "VALUE = 7\n"})
    text = "from beside import VALUE\ndef run():\n    return VALUE\n"
    source = make_source(tmp_path, "bench/script.py", "script", text)
    assert entry(load(source), source)() == 7


def test_versions_live_side_by_side_and_the_users_module_is_put_back(tmp_path: Path):
    write(tmp_path, {"kernels.py": "def run():\n    return 'on disk'\n"})
    sys.path.append(str(tmp_path))
    import kernels  # type: ignore[import-not-found]

    sources = [
        make_source(tmp_path, "kernels.py", "kernels", f"def run():\n    return {n}\n")
        for n in (1, 2)
    ]
    first, second = (load(source) for source in sources)
    assert (first.run(), second.run(), kernels.run()) == (1, 2, "on disk")
    assert sys.modules["kernels"] is kernels
    assert load(sources[0]) is first
    assert load_fresh(sources[0]) is not first


def test_nothing_stays_in_sys_modules_if_nothing_was_there(tmp_path: Path):
    load(make_source(tmp_path, "fresh_kernels.py", "fresh_kernels", "X = 1\n"))
    assert "fresh_kernels" not in sys.modules
    with pytest.raises(LoadError):
        load(make_source(tmp_path, "fresh_kernels.py", "fresh_kernels", "raise ValueError\n"))
    assert "fresh_kernels" not in sys.modules


def test_a_sibling_that_imports_back_does_not_mix_versions(tmp_path: Path):
    write(tmp_path, {"sibling.py": "from circular import WHO\nimport circular\n"})
    text = "WHO = {who!r}\nimport sibling\ndef run():\n    return sibling.WHO\n"
    sources = [
        make_source(tmp_path, "circular.py", "circular", text.format(who=who)) for who in "ab"
    ]
    assert [entry(load(source), source)() for source in sources] == ["a", "b"]


def test_source_and_lines_of_functions_are_those_of_the_text(tmp_path: Path):
    text = "# a comment\n\n\ndef run():\n    # inside\n    raise KeyError('k')\n"
    source = make_source(tmp_path, "lined.py", "lined", text)
    run = entry(load(source), source)
    assert inspect.getsource(run) == "def run():\n    # inside\n    raise KeyError('k')\n"
    assert inspect.getsourcelines(run)[1] == 4
    with pytest.raises(KeyError) as caught:
        run()
    assert line_of(caught.value, source) == 5


def test_triton_reads_the_source_of_each_version(tmp_path: Path):
    pytest.importorskip("triton")
    text = (
        "import triton\nimport triton.language as tl\n\n@triton.jit\n"
        "def kernel(x, N: tl.constexpr):\n    tl.store(x, {n})\n"
    )
    kernels = [
        load(make_source(tmp_path, "jit.py", "jit", text.format(n=n), "kernel")).kernel
        for n in (1, 2)
    ]
    assert ["tl.store(x, 1)" in kernel.src for kernel in kernels] == [True, False]
    assert kernels[0].cache_key != kernels[1].cache_key


@pytest.mark.parametrize(
    ("text", "kind", "line", "words"),
    [
        ("x = 1\ny = (\n", RefusalKind.COMPILE, 1, "SyntaxError"),
        ("def f():\n    return 1\n  x = 2\n", RefusalKind.COMPILE, 2, "unindent"),
        ("x = 1\nimport no_such_module\n", RefusalKind.ENVIRONMENT, 1, "no_such_module"),
        ("import os\nfrom os import nonsense\n", RefusalKind.COMPILE, 1, "nonsense"),
        ("x = 1\n\nx = undefined\n", RefusalKind.COMPILE, 2, "undefined"),
        ("import sys\nsys.exit(3)\n", RefusalKind.COMPILE, 1, "SystemExit"),
        ("x = 1\0", RefusalKind.COMPILE, None, "null"),
    ],
)
def test_a_text_that_cannot_load_is_refused_with_its_line(
    tmp_path: Path, text: str, kind: RefusalKind, line: int | None, words: str
):
    with pytest.raises(LoadError) as caught:
        load(make_source(tmp_path, "broken.py", "broken", text))
    refusal = caught.value.refusal
    assert (refusal.kind, refusal.line) == (kind, line)
    assert words in refusal.message


def test_a_missing_module_is_named_with_the_remedy(tmp_path: Path):
    with pytest.raises(LoadError) as caught:
        load(make_source(tmp_path, "needs.py", "needs", "import no_such_module\n"))
    assert "`no_such_module`" in caught.value.refusal.message
    assert "kernelLsp.worker.python" in caught.value.refusal.message


def test_entries_may_be_methods_and_must_exist(tmp_path: Path):
    text = "class Layer:\n    @staticmethod\n    def forward():\n        return 5\nVALUE = 3\n"
    source = make_source(tmp_path, "methods.py", "methods", text, "Layer.forward")
    assert entry(load(source), source)() == 5
    for name in ("Layer.backward", "nothing", "VALUE"):
        missing = make_source(tmp_path, "methods.py", "methods", text, name)
        with pytest.raises(LoadError) as caught:
            entry(load(missing), missing)
        assert name in caught.value.refusal.message
