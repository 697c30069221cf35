"""When a unit may be put before the rules at all."""

from __future__ import annotations

import dataclasses

from search_engine.domain.kernel import Language
from search_engine.frontends.triton import parse_module
from search_engine.frontends.workload import parse_workloads
from search_engine.rules._base import Subject
from search_engine.rules._subject import make_subject
from search_engine.targets.nvidia_sm90 import TARGET

TEXT = """import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, 1.0, mask=offsets < n)


class Holder:
    # kernel-lsp: workload x=f32[100]
    # kernel-lsp: reference torch.ones_like(x)
    @staticmethod
    def fill(x):
        with torch.no_grad():
            kernel[(1,)](x, x.numel(), BLOCK=128)
        return x
"""


def _subject(text: str) -> Subject | None:
    module = parse_module(text, "kernel.py")
    workloads, _ = parse_workloads(module)
    return make_subject(module, module.units[0], workloads[0], TARGET)


def test_nodes_are_those_of_the_unit():
    subject = _subject(TEXT)
    assert subject is not None
    assert subject.kernel_node.name == "kernel"
    assert subject.entry_node.name == "fill"
    tensor = subject.tensor("x")
    assert tensor is not None
    assert tensor.shape == (100,)


def test_a_kernel_used_elsewhere_has_no_subject():
    assert _subject(TEXT + "\n\nalias = kernel\n") is None
    assert _subject(TEXT + "\n\ndef other(x):\n    kernel[(1,)](x, 3, BLOCK=16)\n") is None


def test_two_definitions_of_one_name_have_no_subject():
    again = "\n\nif torch.version.hip:\n\n    @triton.jit\n    def kernel(x_ptr):\n        pass\n"
    assert _subject(TEXT + again) is None


def test_text_that_does_not_parse_has_no_subject():
    assert _subject(TEXT + "\n\ndef broken(:\n") is None


def test_other_languages_have_no_subject():
    module = parse_module(TEXT, "kernel.py")
    (workload,), _ = parse_workloads(module)
    cuda = dataclasses.replace(module, language=Language.CUDA)
    assert make_subject(cuda, module.units[0], workload, TARGET) is None


def test_a_workload_without_cases_has_no_subject():
    module = parse_module(TEXT, "kernel.py")
    (workload,), _ = parse_workloads(module)
    empty = dataclasses.replace(workload, cases=())
    assert make_subject(module, module.units[0], empty, TARGET) is None
