"""One input of the plan: build it, know the truth, run the baseline, judge the candidate."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from search_engine.domain.job import Comparison, Mismatch, Refusal, RefusalKind, Source
from search_engine.domain.workload import Workload
from search_engine.worker import indices, judge, reference, values
from search_engine.worker.attempt import Attempt
from search_engine.worker.extents import elements, tensors
from search_engine.worker.failure import refusal_for
from search_engine.worker.guards import POISON, SECOND_POISON
from search_engine.worker.inputs import Inputs, WorkloadError, build
from search_engine.worker.judge_types import Judgement, Miss, Rule
from search_engine.worker.loader import line_of
from search_engine.worker.plan import PlannedInput
from search_engine.worker.reach import has_float_atomics, reached_text
from search_engine.worker.run import Around, Output, RunResult, Version, load_version, run

Explain: TypeAlias = Callable[[BaseException, Source], Refusal]
"""What an exception of a version means; the message continues "your kernel"."""

UNSTEADY = "two runs of your kernel on the same input differ by more than rounding"

_GRADIENT_FACTOR = 3.0
_LONGEST_MESSAGE = 1000
_KEPT_INPUTS = 24
_KEPT_ELEMENTS = 1 << 22
"""Inputs up to this size keep their truth and baseline output for the next candidate: at most some
100 MiB each."""


@dataclass(frozen=True, slots=True)
class Outside:
    """The input is not in the baseline's domain; the reason says what showed it.

    ``wrong`` if the baseline ran and its result cannot serve: not merely another domain.
    """

    reason: str
    wrong: bool = False


@dataclass(slots=True)
class Prepared:
    """An input whose truth is known and on which the baseline passed its gate."""

    inputs: Inputs
    expected: tuple[Any, ...]
    outputs: tuple[Output, ...]
    rules: tuple[Rule, ...]
    notes: tuple[str, ...]
    moved: tuple[Any, ...] | None = None
    """How far the truth moves when inputs are rounded; found out only when it is needed."""
    steady: bool | None = None
    """If a second run of the baseline agrees with the first; found out only when it is needed."""


_prepared: OrderedDict[str, Prepared] = OrderedDict()


class Session:
    """Baseline, candidate and workload of one job on one device."""

    def __init__(
        self,
        baseline: Source,
        workload: Workload,
        device: str,
        around: Around | None = None,
        explain: Explain | None = None,
    ) -> None:
        self.workload, self.device, self._around = workload, device, around
        self._explain = explain or _explained
        self.root = Path(baseline.root)
        self.baseline: Version = load_version(baseline)
        self.baseline_text = reached_text(baseline)
        self.notes: list[str] = []

    @property
    def independent(self) -> bool:
        """True if a reference is declared."""
        return bool(self.workload.references)

    def prepare(self, item: PlannedInput) -> Prepared | Outside | Refusal:
        """Inputs, truth and the baseline's outputs; from an earlier job if they are known."""
        key = self._key(item)
        if key in _prepared:
            _prepared.move_to_end(key)
            return _prepared[key]
        made = self._prepare(item)
        if isinstance(made, Prepared):
            self.notes.extend(note for note in made.notes if note not in self.notes)
            if elements(item.case) <= _KEPT_ELEMENTS:
                _prepared[key] = made
                while len(_prepared) > _KEPT_INPUTS:
                    _prepared.popitem(last=False)
        return made

    def makes_sense(self, item: PlannedInput) -> bool:
        """True if the reference evaluates on the input; without one, if it can be built."""
        with Attempt() as attempt:
            inputs = build(item.case, self.workload, item.seed, self.device, self.root)
            self._truth(inputs, item.seed)
        return attempt.error is None

    def judge(
        self, item: PlannedInput, prepared: Prepared, candidate: Version, turn: int = 0
    ) -> tuple[Comparison | Mismatch | Refusal, tuple[Output, ...]]:
        """One run of the candidate on a prepared input, and its outputs."""
        poison = SECOND_POISON if turn % 2 else POISON
        made = self.call(candidate, prepared.inputs, item.seed, poison)
        if made.error is not None:
            return self._raised(item, made.error, candidate.source), ()
        return self.judged(item, prepared, made, candidate), made.outputs

    def judged(
        self, item: PlannedInput, prepared: Prepared, made: RunResult, candidate: Version
    ) -> Comparison | Mismatch:
        """Judge what a call that did not raise left behind."""
        miss = self._first_difference(prepared, made)
        if miss is not None:
            return self._mismatch(item, *miss)
        serial = has_float_atomics(reached_text(candidate.source))
        error = baseline_error = 0.0
        for position, output in enumerate(made.outputs):
            judgement = self._judged(item, prepared, position, output, serial)
            if judgement.miss is not None:
                return self._mismatch(item, output.name, judgement.miss)
            error = max(error, judgement.error)
            baseline_error = max(baseline_error, judgement.baseline_error)
        return Comparison(item.label, item.variant.value, item.seed, error, baseline_error)

    def steady(self, item: PlannedInput, prepared: Prepared) -> bool:
        """False if a second run of the baseline differs from the first by more than rounding.

        Asked only after a comparison failed: it says whether the yardstick itself moves.
        """
        if prepared.steady is None:
            again = self.call(self.baseline, prepared.inputs, item.seed, SECOND_POISON)
            same = again.error is None and len(again.outputs) == len(prepared.outputs)
            first = _own_truth(prepared.outputs)
            prepared.steady = same and self._gate(item, prepared, first, again.outputs) is None
        return prepared.steady

    def call(self, version: Version, inputs: Inputs, seed: int, poison: int = POISON) -> RunResult:
        """One guarded call of a version."""
        return run(version, self.workload, inputs, seed, poison, self._around)

    def _prepare(self, item: PlannedInput) -> Prepared | Outside | Refusal:
        with Attempt() as attempt:
            return self._known(item)
        error = attempt.error
        assert error is not None
        if isinstance(error, WorkloadError):
            return self._refused(item, RefusalKind.WORKLOAD, str(error))
        refusal = refusal_for(error)
        if refusal.fatal:
            return refusal
        if type(error).__name__ == "OutOfMemoryError":
            return Outside("needs more memory than the device has")
        if isinstance(error, reference.ReferenceError):
            return self._refused(item, RefusalKind.REFERENCE, str(error))
        if "can't allocate memory" in str(error):
            return Outside("needs more memory than the machine has")
        return self._reference_raised(item, error)

    def _reference_raised(self, item: PlannedInput, error: BaseException) -> Outside | Refusal:
        """Names the expression and its line if there is only one it can be."""
        only = self.workload.references[0] if len(self.workload.references) == 1 else None
        text = f"the reference raises {type(error).__name__}: {str(error)[:400]}"
        if only is not None:
            text += f" (`{only.expression}`)"
        line = None if only is None else only.line
        return Refusal(RefusalKind.REFERENCE, text, line) if item.declared else Outside(text)

    def _known(self, item: PlannedInput) -> Prepared | Outside | Refusal:
        inputs = build(
            item.case, self.workload, item.seed, self.device, self.root, item.variant,
            item.misaligned,
        )  # fmt: skip
        truth = self._truth(inputs, item.seed)  # first: torch notices sizes that do not fit
        made = self.call(self.baseline, inputs, item.seed)
        if made.error is not None:
            return self._baseline_raised(item, made.error)
        if made.harm is not None:
            return self._refused(item, RefusalKind.REFERENCE, f"your kernel: {made.harm}")
        names = tuple(output.name for output in made.outputs)
        if not names:
            return Refusal(RefusalKind.WORKLOAD, "the entry returns no tensor and changes none")
        expected = reference.align(truth, names) if truth else _own_truth(made.outputs)
        rules = tuple(self._rule(item, output) for output in made.outputs)
        prepared = Prepared(inputs, expected, made.outputs, rules, truth.notes if truth else ())
        failed = self._gate(item, prepared, expected, made.outputs)
        if failed is None:
            return prepared
        if not self.steady(item, prepared):
            return self._wrong(item, f"{UNSTEADY} ({item.label})")
        return self._disagrees(item, *failed)

    def _truth(self, inputs: Inputs, seed: int) -> reference.Truth | None:
        if not self.independent:
            return None
        return reference.evaluate(self.workload, self.baseline.module, inputs, seed)

    def _gate(
        self,
        item: PlannedInput,
        prepared: Prepared,
        truth: tuple[Any, ...],
        outputs: tuple[Output, ...],
    ) -> tuple[str, Miss] | None:
        for position, output in enumerate(outputs):
            expected, rule = truth[position], prepared.rules[position]
            miss = judge.gate(expected, output.tensor, rule)
            if miss is not None and miss.index and math.isfinite(miss.got) and self.independent:
                moved = self._moved(item, prepared)[position]
                miss = judge.gate(expected, output.tensor, rule, moved)
            if miss is not None:
                return output.name, miss
        return None

    def _judged(
        self, item: PlannedInput, prepared: Prepared, position: int, output: Output, serial: bool
    ) -> Judgement:
        """Judge one output. A chain of additions as long as the sum is granted to atomics only."""
        expected, rule = prepared.expected[position], prepared.rules[position]
        if serial:
            rule = dataclasses.replace(rule, chain=max(rule.chain, rule.terms))
        baseline = prepared.outputs[position].tensor
        judgement = judge.judge(expected, baseline, output.tensor, rule)
        if judgement.miss is None or not self.independent:
            return judgement
        if not baseline.dtype.is_floating_point:
            return self._as_index(prepared, position, output, judgement)
        moved = self._moved(item, prepared)[position]
        return judge.judge(expected, baseline, output.tensor, rule, moved)

    def _as_index(
        self, prepared: Prepared, position: int, output: Output, judgement: Judgement
    ) -> Judgement:
        """An index of an extreme may differ where the values it picks are as extreme."""
        picked = indices.picked_from(self.workload, self.baseline.module, prepared.inputs, position)
        if picked is None:
            return judgement
        any_tie = "any-tie" in self.workload.allow
        miss = indices.judge(picked, prepared.expected[position], output.tensor, any_tie)
        return Judgement(0.0, 0.0, miss)

    def _moved(self, item: PlannedInput, prepared: Prepared) -> tuple[Any, ...]:
        if prepared.moved is None:
            names = tuple(output.name for output in prepared.outputs)
            prepared.moved = reference.spread(
                self.workload, self.baseline.module, prepared.inputs, item.seed,
                prepared.expected, names,
            )  # fmt: skip
        return prepared.moved

    def _first_difference(self, prepared: Prepared, made: RunResult) -> tuple[str, Miss] | None:
        if made.harm is not None:
            return "memory", _statement(made.harm)
        before = [output.name for output in prepared.outputs]
        names = [output.name for output in made.outputs]
        if names != before:
            return "outputs", _statement(f"outputs are {names}, {before} before")
        for old, new in zip(prepared.outputs, made.outputs, strict=True):
            broken = judge.contract(old.tensor, new.tensor)
            if broken is not None:
                return new.name, _statement(broken)
        return None

    def _rule(self, item: PlannedInput, output: Output) -> Rule:
        floats = [t for t in tensors(item.case) if values.is_float(t.dtype)]
        given = sum(math.prod(t.shape) for t in tensors(item.case))
        ratio = max(2, given // max(output.tensor.numel(), 1))
        longest = max((n for t in tensors(item.case) for n in t.shape), default=2)
        double = bool(floats) and all(t.dtype == "f64" for t in floats)
        widest = 2.0**-53 if double else 2.0**-24
        narrow = [judge.half_ulp(values.torch_dtype(t.dtype)) for t in floats]
        tf32 = [2.0**-11] if "tl.dot" in self.baseline_text and not double else []
        return Rule(
            factor=self._factor(output),
            reduction=max(ratio, longest),
            terms=ratio,
            chain=ratio if has_float_atomics(self.baseline_text) else 1,
            baseline_chain=max(ratio, longest),
            u_acc=widest,
            u_base=max([widest, *narrow, *tf32]),
            zero_mean=item.variant.zero_mean and _centred(floats),
            independent=self.independent,
            float_inputs=bool(floats),
        )

    def _factor(self, output: Output) -> float:
        declared = self.workload.tolerance_factor
        return max(declared, _GRADIENT_FACTOR) if output.gradient else declared

    def _disagrees(self, item: PlannedInput, name: str, miss: Miss) -> Outside | Refusal:
        place = f"{name}{list(miss.index)}" if miss.index else name
        text = (
            f"your kernel disagrees with its reference on {item.label} ({item.variant.value}): "
            f"{place} is {miss.got:g} where {miss.expected:g} is expected ({miss.reason})"
        )
        return self._wrong(item, text)

    def _wrong(self, item: PlannedInput, text: str) -> Outside | Refusal:
        if item.declared:
            return Refusal(RefusalKind.REFERENCE, text)
        return Outside(text, wrong=True)

    def _refused(self, item: PlannedInput, kind: RefusalKind, text: str) -> Outside | Refusal:
        return Refusal(kind, text) if item.declared else Outside(text)

    def _baseline_raised(self, item: PlannedInput, error: BaseException) -> Outside | Refusal:
        refusal = self._explain(error, self.baseline.source)
        text = f"your kernel {refusal.message}"
        if refusal.kind is RefusalKind.ENVIRONMENT:
            text = refusal.message
        if refusal.fatal or item.declared:
            return dataclasses.replace(refusal, message=text)
        return Outside(text)

    def _raised(self, item: PlannedInput, error: BaseException, source: Source) -> Refusal:
        refusal = refusal_for(error)
        line = refusal.line if refusal.line is not None else line_of(error, source)
        message = f"on {item.label}: {refusal.message}"
        return Refusal(refusal.kind, message, line, refusal.fatal)

    def _mismatch(self, item: PlannedInput, name: str, miss: Miss) -> Mismatch:
        return Mismatch(
            item.label, item.variant.value, item.seed, name, miss.index, miss.got, miss.expected,
            miss.limit, miss.reason,
        )  # fmt: skip

    def _key(self, item: PlannedInput) -> str:
        described = (self.baseline.source.text, self.workload, item, self.device)
        return hashlib.sha256(repr(described).encode()).hexdigest()


def _explained(error: BaseException, source: Source) -> Refusal:
    refusal = refusal_for(error)
    line = refusal.line if refusal.line is not None else line_of(error, source)
    if refusal.kind is not RefusalKind.RUNTIME:
        return dataclasses.replace(refusal, line=line)
    text = f"raises {type(error).__name__}: {str(error)[:_LONGEST_MESSAGE]}"
    return Refusal(refusal.kind, text, line, refusal.fatal)


def _own_truth(outputs: tuple[Output, ...]) -> tuple[Any, ...]:
    return tuple(
        output.tensor.double() if output.tensor.dtype.is_floating_point else output.tensor.clone()
        for output in outputs
    )


def _centred(floats: list[Any]) -> bool:
    """True if every normally distributed input has mean zero, so that sums cancel."""
    means = [t.values.parameters[1] for t in floats if len(t.values.parameters) == 2]
    return bool(floats) and any(mean == 0 for mean in means)


def _statement(text: str) -> Miss:
    return Miss((), math.nan, math.nan, 0.0, text)
