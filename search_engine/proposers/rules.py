"""Ask every rewrite rule, and keep what it may change: the unit, as far as the user permits."""

from __future__ import annotations

import ast
import logging
import random
from collections.abc import Iterator

from search_engine.domain.candidate import Candidate, Numerics, Rewrite, python_text
from search_engine.domain.ports import ProposalContext
from search_engine.proposers.line_ends import edited
from search_engine.proposers.lineage import rewritten
from search_engine.proposers.sites import last_name
from search_engine.rules._base import Rule, Subject
from search_engine.rules._subject import make_subject

LOG = logging.getLogger(__name__)
_WIDE = ("int64", "uint64", "i64")
_HINTS = ("multiple_of", "max_contiguous", "max_constancy")


class Rules:
    """Candidates with another structure, one for each rewrite of each rule."""

    name = "rules"

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        self._rules = rules

    def propose(self, context: ProposalContext, rng: random.Random) -> tuple[Candidate, ...]:
        """Every rewrite that applies, in the order of the registry; ``rng`` is not drawn from."""
        subject = make_subject(context.module, context.unit, context.workload, context.target)
        if subject is None:
            return ()
        found: dict[str, Candidate] = {}
        for rule in self._rules:
            for rewrite in self._ask(rule, subject):
                made = _candidate(context, rewrite, self.name)
                if made is not None:
                    found.setdefault(made.id, made)
        return tuple(found.values())

    def _ask(self, rule: Rule, subject: Subject) -> tuple[Rewrite, ...]:
        try:
            return rule.rewrites(subject)
        except Exception:
            # The producer guard: a mistake in one rule costs its candidates, never the search.
            LOG.exception("rule %s failed on %s", rule.name, subject.unit.kernel.name)
            return ()


def _candidate(context: ProposalContext, rewrite: Rewrite, proposer: str) -> Candidate | None:
    node = context.node
    reason = _objection(context, rewrite)
    if reason is None:
        try:
            text = edited(node.text, rewrite.edits)
            reason = _objection_to_text(node.text, text)
        except ValueError as error:  # edits overlap, or the result is no Python
            reason = str(error)
        except SyntaxError as error:
            reason = f"does not parse: {error}"
        else:
            made = rewritten(node, text, rewrite, proposer)
            if made.id in (node.id, node.parent, node.structure):
                reason = "is an ancestor"
            if reason is None:
                return made
    LOG.info("dropped %s (%s): %s", rewrite.title, rewrite.rule, reason)
    return None


def _objection(context: ProposalContext, rewrite: Rewrite) -> str | None:
    """Why a rewrite may not be applied; None if it may."""
    if (
        rewrite.numerics is Numerics.LOWERS_PRECISION
        and "lowers-precision" not in context.workload.allow
    ):
        return "lowers the precision without permission"
    for edit in rewrite.edits:
        spans = context.unit.spans
        if not any(span.start <= edit.start and edit.end <= span.end for span in spans):
            return f"edits byte {edit.start}, outside the unit"
    return None


def _objection_to_text(old: str, new: str) -> str | None:
    """Why the text after a rewrite is not acceptable. Raises SyntaxError if it does not parse."""
    before, after = ast.parse(python_text(old)), ast.parse(python_text(new))
    if len(_wide_casts(after)) < len(_wide_casts(before)):
        return "removes a cast to 64 bits"
    if len(list(_hints(after))) > len(list(_hints(before))):
        return "adds an alignment hint that nothing proves"
    return None


def _wide_casts(tree: ast.Module) -> set[str]:
    """Distinct casts to 64 bits: merging equal ones loses nothing, dropping one may overflow."""
    casts: set[str] = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or last_name(node.func) not in ("to", "cast"):
            continue
        if any(_is_wide(argument) for argument in node.args):
            casts.add(ast.unparse(node))
    return casts


def _is_wide(node: ast.expr) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute)) and last_name(node) in _WIDE


def _hints(tree: ast.Module) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and last_name(node.func) in _HINTS:
            yield node
