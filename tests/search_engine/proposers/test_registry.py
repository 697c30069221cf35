"""Every registered proposer on every example, with its declared workload."""

import ast
import importlib
import pkgutil
import random
from pathlib import Path

import pytest

import search_engine.proposers
from search_engine.domain.candidate import Candidate, Numerics, candidate_id
from search_engine.frontends.triton import parse_module
from search_engine.frontends.workload import parse_workloads
from search_engine.proposers.context import Context
from search_engine.proposers.registry import configuration_proposers, structure_proposers
from search_engine.targets.registry import TARGETS, target_named

EXAMPLES = Path(__file__).parents[3] / "examples"
FILES = sorted(EXAMPLES.rglob("*.py"))
PROPOSERS = (*structure_proposers(), *configuration_proposers(24))


def contexts(path, target):
    text = path.read_text()
    module = parse_module(text, str(path))
    workloads, problems = parse_workloads(module)
    assert not problems
    identity = candidate_id(text)
    node = Candidate(identity, text, None, identity, "-", (), (), (), Numerics.EXACT)
    for unit in module.units:
        assert unit.entry is not None
        for workload in workloads:
            if workload.entry == unit.entry.qualified_name:
                yield Context(node, module, unit, workload, target)


def outside_unit(text, kernel):
    module = parse_module(text, "x.py")
    unit = next(unit for unit in module.units if unit.kernel.name == kernel)
    position, kept = 0, []
    for span in unit.spans:
        kept.append(text.encode()[position : span.start].strip())
        position = max(position, span.end)
    return [*kept, text.encode()[position:].strip()]


def test_names_are_unique():
    assert len({proposer.name for proposer in PROPOSERS}) == len(PROPOSERS)


def test_every_class_that_proposes_is_listed():
    listed = {type(proposer).__name__ for proposer in PROPOSERS}
    for item in pkgutil.iter_modules(search_engine.proposers.__path__):
        module = importlib.import_module(f"search_engine.proposers.{item.name}")
        for name, value in vars(module).items():
            own = getattr(value, "__module__", None) == module.__name__
            if own and isinstance(value, type) and hasattr(value, "propose"):
                assert name in listed


def test_a_run_can_be_restricted_to_named_rules():
    context = next(contexts(EXAMPLES / "softmax.py", target_named("sm_90")))
    (rules,) = structure_proposers(("online-reduction",))
    made = rules.propose(context, random.Random(0))
    assert made and all(candidate.rules == ("online-reduction",) for candidate in made)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(EXAMPLES))[:-3])
def test_candidates_parse_and_leave_the_rest_of_the_file_alone(path):
    for context in contexts(path, target_named("sm_90")):
        made = [c for p in PROPOSERS for c in p.propose(context, random.Random(0))]
        assert made, "an example where nothing can be tried"
        assert len({candidate.id for candidate in made}) == len(made)
        kernel = context.unit.kernel.name
        for candidate in made:
            ast.parse(candidate.text)
            assert candidate.text != context.node.text
            assert outside_unit(candidate.text, kernel) == outside_unit(context.node.text, kernel)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_every_target_gets_configurations(target):
    for context in contexts(EXAMPLES / "matmul.py", target):
        assert len(PROPOSERS[-1].propose(context, random.Random(0))) > 10
