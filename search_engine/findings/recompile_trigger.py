"""A constant of the kernel that has a new value in many calls, so each of them compiles.

Cause
    A `tl.constexpr` argument is part of the key under which Triton keeps compiled kernels. If it is
    fed by the number of rows, a sequence length, the stride of a buffer that follows them, or a
    seed, each new value compiles the kernel again, which takes hundreds of milliseconds.

Fix
    Make it a plain argument: drop the annotation. Triton still tells the compiler whether a plain
    integer is 1 or divisible by 16, at most three compilations in all, so aligned strides keep
    their wide loads. Do not add `do_not_specialize` for a stride or row length: that takes the
    alignment away as well. No rewrite rule does this.

Shown when
    The launch passes, for a parameter annotated `tl.constexpr`, something computed from the first
    size of a tensor, from a size with a name such as `seq_len`, from `numel()` or `len()`, from a
    stride behind which such a size lies, or a seed or step; and the kernel uses the parameter only
    where a value known at run time would do. Block sizes, powers of two, minima, remainders and
    comparisons are silent: they take few values. So are head and hidden sizes and everything of a
    weight.

False positives
    A program that only ever calls with one size. Names decide where positions do not.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator

from search_engine.domain.finding import Finding, Related, Severity
from search_engine.domain.kernel import Launch, LaunchArgument, Parameter
from search_engine.domain.workload import TensorArgument, Workload
from search_engine.findings._base import Subject, finding
from search_engine.findings._constant_use import needs_constant
from search_engine.findings._host_origin import HostOrigins, Origin, OriginKind
from search_engine.findings._launch import entry_at, entry_node, passed
from search_engine.findings._varying import fixed_by_name, varies

_COST = 0.5
"""Against a kernel of microseconds a compilation is everything, in the calls that pay for it."""


_LONGEST = 40
"""Characters of an expression that a message still shows."""


class RecompileTrigger:
    """Constants that are none."""

    code = "KL209"
    name = "recompile-trigger"
    severity = Severity.HINT
    shown = True

    def findings(self, subject: Subject) -> Iterator[Finding]:
        """One for each line of a launch, at the argument."""
        constants = {item.name: item for item in subject.unit.kernel.parameters if item.constexpr}
        told: set[int] = set()
        for launch in subject.module.launches if constants else ():
            if launch.kernel != subject.unit.kernel.name:
                continue
            for parameter, argument, origin in _varying(subject, launch, constants):
                if argument.span.line not in told:
                    told.add(argument.span.line)
                    yield self._at(subject, parameter, argument, origin)

    def _at(
        self, subject: Subject, parameter: Parameter, argument: LaunchArgument, origin: Origin
    ) -> Finding:
        values = _values(subject.workload, origin)
        known = f" ({values} in this workload)" if values > 1 else ""
        facts: dict[str, float | int | str] = {"parameter": parameter.name, "origin": origin.text}
        span = parameter.span
        return finding(
            self,
            subject,
            argument.span,
            f"{parameter.name} is constexpr: a compile for each value of {origin.text}{known}",
            _COST,
            facts=facts | ({"compiles": values} if values > 1 else {}),
            related=(Related(span.line, span.start, span.end, "declared constexpr here"),),
        )


def _varying(
    subject: Subject, launch: Launch, constants: dict[str, Parameter]
) -> Iterator[tuple[Parameter, LaunchArgument, Origin]]:
    entry = entry_at(subject, launch)
    function = entry_node(subject, entry) if entry is not None else None
    if function is None:
        return
    host = HostOrigins(function)
    for name, argument in passed(subject, launch).items():
        if name not in constants or fixed_by_name(name):
            continue
        origin = _first_varying(host, argument.text)
        if origin is not None and not needs_constant(subject, subject.unit.kernel, name):
            yield constants[name], argument, origin


def _first_varying(host: HostOrigins, text: str) -> Origin | None:
    """What changes; a quotient that is passed is named as it is written."""
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        return None
    origin = next((item for item in host.of(node) if varies(host, item)), None)
    written = host.written(node)
    divided = "//" in written or "cdiv" in written
    if origin is None or len(written) > _LONGEST or not divided:
        return origin
    return dataclasses.replace(origin, text=written, dimension=None)


def _values(workload: Workload | None, origin: Origin) -> int:
    """Different values of a size over the cases of the workload; 0 where that is not known."""
    if workload is None or origin.kind is not OriginKind.SIZE or origin.dimension is None:
        return 0
    found: set[int] = set()
    for case in workload.cases:
        for item in case.arguments:
            if isinstance(item, TensorArgument) and item.name == origin.source:
                shape = item.shape
                if -len(shape) <= origin.dimension < len(shape):
                    found.add(shape[origin.dimension])
    return len(found)
