"""Narrow accesses because the compiler does not know that an argument is divisible by 16.

Cause
    Triton passes one fact about an integer or a pointer to the compiler: whether it is divisible by
    16. Rows start at a multiple of 16 bytes only if their stride is, and a mask `cols < n` keeps
    neighbours together only if `n` is. Without the fact each element is loaded on its own. A
    decorator may withhold it, a size may not be divisible, or a view may start off the grid.

Fix
    Take the argument off `do_not_specialize`; pad rows so that strides are multiples of 16; pass a
    contiguous tensor instead of a view. Where another fact is known (a stride of 72 is divisible
    by 8), state it on the computed offset: `tl.multiple_of(row * stride, 8)`. A hint on the bare
    parameter has no effect.

Shown when
    The machine code makes narrow accesses on the line, exactly as narrow as the compiler's rules
    predict, and by the same rules they would be wider if the named arguments were divisible by 16.

False positives
    A size that is odd in every real use cannot be made even: padding costs memory, and a kernel
    with many bytes in flight may gain little. For an assumed launch only withheld facts count.
"""

from __future__ import annotations

from collections.abc import Iterator

from search_engine.domain.code import ArgumentKind, KernelArgument, LaunchCode
from search_engine.domain.finding import Finding, Related, Severity
from search_engine.domain.kernel import Span
from search_engine.findings._answer import answering
from search_engine.findings._base import Subject, finding
from search_engine.findings._code import one_per_line, plural
from search_engine.findings._launch import launch_at, passed
from search_engine.findings._vectors import Narrow, access_cost, narrow_accesses

_LEAST_COST = 0.03


class AlignmentLost:
    """Narrow accesses that arguments explain."""

    code = "KL106"
    name = "alignment-lost"
    severity = Severity.HINT
    shown = True

    def findings(self, subject: Subject) -> Iterator[Finding]:
        """One for each line."""
        yield from one_per_line(
            found
            for launch in subject.launches
            for item in narrow_accesses(subject, launch)
            for found in self._judge(subject, launch, item)
        )

    def _judge(self, subject: Subject, launch: LaunchCode, item: Narrow) -> Iterator[Finding]:
        cost = access_cost(subject, launch, item)
        if not item.culprits or cost < _LEAST_COST:
            return
        if launch.assumed and any(argument.specialised for argument in item.culprits):
            return
        withheld = not any(argument.specialised for argument in item.culprits)
        noun = plural(item.count, "store" if item.store else "load")
        yield finding(
            self,
            subject,
            subject.line_span(item.line),
            f"{_reason(item)}: {noun} of {item.width} B, not {item.wide_count:,} of {item.wide} B",
            cost,
            facts={
                "arguments": ", ".join(argument.name for argument in item.culprits),
                "count": item.count,
                "width_bytes": item.width,
                "possible": item.wide,
            },
            related=_places(subject, launch, item.culprits),
            rule=answering(subject, "specialise-sizes") if withheld else None,
        )


def _reason(item: Narrow) -> str:
    first, factor = item.culprits[0], _power_of_two(item.culprits[0])
    names = " and ".join(f"`{argument.name}`" for argument in item.culprits[:2])
    verb = "are" if len(item.culprits) > 1 else "is"
    if not first.specialised and first.value == "1":
        return f"`do_not_specialize` hides that {names} {verb} 1"
    if not first.specialised and factor in (0, 16):
        fact = "that" if factor else "whether"
        return f"`do_not_specialize` hides {fact} {names} {verb} divisible by 16"
    if first.kind is ArgumentKind.POINTER:
        return f"`{first.name}` does not start at a multiple of 16 B"
    if not factor:
        return f"{names} not known to be divisible by 16"
    bound = "mask bound " if item.in_mask else ""
    only = "odd" if factor == 1 else f"divisible by {factor} only"
    return f"{bound}`{first.name}` = {int(first.value or 0):,} is {only}"


def _power_of_two(argument: KernelArgument) -> int:
    """Largest power of two, up to 16, that divides the value; 0 if it is not known."""
    text = argument.value or ""
    if not text.lstrip("-").isdigit():
        return 0
    value = int(text)
    return 16 if value == 0 else min(16, value & -value)


def _places(
    subject: Subject, launch: LaunchCode, culprits: tuple[KernelArgument, ...]
) -> tuple[Related, ...]:
    """The decorator that withholds the fact, or what the launch passes; else the parameter."""
    site = launch_at(subject, launch.line)
    given = passed(subject, site) if site is not None else {}
    found: list[Related] = []
    for argument in culprits:
        decorator = _decorator(subject)
        if not argument.specialised and decorator is not None:
            found.append(_related(decorator, f"withholds facts about `{argument.name}`"))
        elif argument.name in given:
            value = f" = {argument.value}" if argument.value is not None else ""
            found.append(_related(given[argument.name].span, f"`{argument.name}`{value}"))
        else:
            parameters = subject.unit.kernel.parameters
            spans = [item.span for item in parameters if item.name == argument.name]
            found += [_related(span, f"`{argument.name}`") for span in spans]
    return tuple(dict.fromkeys(found))


def _decorator(subject: Subject) -> Span | None:
    withholding = [
        item.span for item in subject.unit.kernel.decorators if "do_not_specialize" in item.text
    ]
    return withholding[0] if withholding else None


def _related(span: Span, message: str) -> Related:
    return Related(span.line, span.start, span.end, message)
