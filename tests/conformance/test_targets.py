"""What every target must satisfy; a new file inherits these tests by its registry line."""

import importlib
import pkgutil

import pytest

import search_engine.targets
from search_engine.domain.target import Figure, Target
from search_engine.targets.registry import TARGETS

FIGURES = ("memory_bandwidth", "matrix_rate", "vector_rate")
COUNTS = (
    "processors", "warps_per_processor", "blocks_per_processor", "registers_per_processor",
    "registers_per_thread", "shared_bytes_per_processor", "shared_bytes_per_block", "l2_bytes",
)  # fmt: skip
HEADINGS = ("Identity", "Figures with source", "Rules of thumb")


def sibling_modules():
    names = [item.name for item in pkgutil.iter_modules(search_engine.targets.__path__)]
    return [
        importlib.import_module(f"search_engine.targets.{name}")
        for name in names
        if name != "registry"
    ]


def test_every_sibling_file_is_listed_once():
    assert sorted(module.TARGET.name for module in sibling_modules()) == sorted(
        target.name for target in TARGETS
    )


def test_names_are_unique():
    assert len({target.name for target in TARGETS}) == len(TARGETS)


@pytest.mark.parametrize("module", sibling_modules(), ids=lambda module: module.__name__)
def test_docstring_has_the_fixed_headings_in_order(module):
    lines = [line.strip() for line in (module.__doc__ or "").splitlines()]
    assert [line for line in lines if line in HEADINGS] == list(HEADINGS)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
class TestTarget:
    def test_counts_and_figures_are_positive(self, target: Target):
        assert all(getattr(target, name) > 0 for name in COUNTS)
        assert all(getattr(target, name).value > 0 for name in FIGURES)
        assert 0 < target.fp64_ratio <= 1

    def test_every_figure_names_unit_and_source(self, target: Target):
        for name in FIGURES:
            figure: Figure = getattr(target, name)
            assert figure.unit.strip()
            assert figure.source.strip()

    def test_limits_are_consistent(self, target: Target):
        assert target.warp_size in (32, 64)
        assert target.shared_bytes_per_block <= target.shared_bytes_per_processor
        assert target.blocks_per_processor <= target.warps_per_processor
        assert target.backend in ("cuda", "hip")
        assert target.arch in target.name
