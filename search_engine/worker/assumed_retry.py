"""Corrections of an inferred launch, from what the compiler said about it.

The only place where alternatives are made. One function per family of messages, in ``_ANSWERS``;
each gives launches, most promising first. All of them change guesses alone: an argument whose value
the launch site or a configuration writes keeps it, because there the compiler's refusal is news
about the kernel and not about the guess.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeAlias

from search_engine.domain.assumption import assumption_notes
from search_engine.domain.job import AssumedArgument, AssumedLaunch
from search_engine.worker.assumed_blame import Blame

CORRECTED = "corrected because the first guess does not compile"
"""Origin of an argument that was changed here."""

_FLOATS = ("fp32", "bf16", "fp16")
_MOST_ALTERNATIVES = 8

_Answer: TypeAlias = Callable[["_Guess"], Iterable[AssumedLaunch]]


def alternatives(
    launch: AssumedLaunch, error: BaseException, found: Blame, constants: frozenset[str]
) -> list[AssumedLaunch]:
    """Launches that may answer the compiler's message, best first.

    ``constants`` are the parameters that are declared ``tl.constexpr``.
    """
    guess = _Guess(launch, found, constants)
    if type(error).__name__ == "OutOfResources":
        return list(_smaller(guess))
    if "ptxas" in found.message:  # machine code: types and lengths are settled, and it takes long
        return []
    answers = [answer for pattern, answer in _ANSWERS if pattern.search(found.message)]
    made = [item for answer in answers for item in answer(guess)]
    if not answers and found.line:  # a message that no answer is known to
        made = list(_anything(guess))
    unique = {identity(item): item for item in reversed(made)}
    return list(reversed(unique.values()))[:_MOST_ALTERNATIVES]


def identity(launch: AssumedLaunch) -> tuple[object, ...]:
    """What makes two launches the same to the compiler."""
    told = tuple((a.name, a.dtype, a.value, a.divisible_by_16) for a in launch.arguments)
    return told, tuple(sorted(launch.options))


class _Guess:
    """A launch that failed, and ways to change it."""

    def __init__(self, launch: AssumedLaunch, found: Blame, constants: frozenset[str]) -> None:
        self.launch, self.blame, self._constants = launch, found, constants
        self.arguments = {argument.name: argument for argument in launch.arguments}

    def guessed(self) -> list[AssumedArgument]:
        """Constants that are guesses, corrected or not."""
        return [
            argument
            for argument in self.launch.arguments
            if argument.dtype == "constexpr" and argument.origin in ("", CORRECTED)
        ]

    def absent(self) -> list[str]:
        """Parameters that are None and could be passed."""
        return [
            argument.name
            for argument in self.launch.arguments
            if argument.value == "None" and argument.name not in self._constants
        ]

    def pointers(self, *elements: str) -> list[str]:
        """Pointers to any of the element types (to anything without them)."""
        return [
            argument.name
            for argument in self.launch.arguments
            if argument.dtype.startswith("*") and (not elements or argument.dtype[1:] in elements)
        ]

    def typed(self, names: Iterable[str], dtype: str) -> AssumedLaunch:
        """The launch with another type for these parameters; pointers are aligned."""
        changes = {
            name: replace(
                self.arguments[name],
                dtype=dtype,
                value=None,
                divisible_by_16=dtype.startswith("*"),
                origin=CORRECTED,
            )
            for name in names
        }
        return self._changed(changes)

    def valued(self, values: dict[str, str]) -> AssumedLaunch:
        """The launch with other values of constants."""
        return self._changed(
            {
                name: replace(self.arguments[name], value=value, origin=CORRECTED)
                for name, value in values.items()
            }
        )

    def with_option(self, name: str, value: int) -> AssumedLaunch:
        """The launch with another option of Triton's."""
        options = (*((n, v) for n, v in self.launch.options if n != name), (name, value))
        kept = [n for n in _option_notes(self.launch) if not n.startswith(f"{name} = ")]
        note = f"{name} = {value}, {CORRECTED}"
        notes = assumption_notes(self.launch.arguments, [*kept, note], self.launch.line is not None)
        return replace(self.launch, options=options, notes=notes)

    def numbers(self, names: Iterable[str] | None = None) -> dict[str, int]:
        """Guessed constants that are whole numbers, of ``names`` or all."""
        wanted = None if names is None else set(names)
        return {
            argument.name: int(argument.value)
            for argument in self.guessed()
            if argument.value is not None
            and argument.value.lstrip("-").isdigit()
            and (wanted is None or argument.name in wanted)
            and "stride" not in argument.name.lower()
        }

    def _changed(self, changes: dict[str, AssumedArgument]) -> AssumedLaunch:
        arguments = tuple(changes.get(item.name, item) for item in self.launch.arguments)
        notes = assumption_notes(
            arguments, _option_notes(self.launch), self.launch.line is not None
        )
        return replace(self.launch, arguments=arguments, notes=notes)


def _option_notes(launch: AssumedLaunch) -> list[str]:
    names = tuple(f"assumed {name} = " for name, _ in launch.options)
    return [note.removeprefix("assumed ") for note in launch.notes if note.startswith(names)]


def _float_types(guess: _Guess) -> Iterable[AssumedLaunch]:
    """Operands of different types: all floats the same."""
    floats = guess.pointers(*_FLOATS)
    near = guess.blame.first(floats)
    for element in _FLOATS:
        if any(guess.arguments[name].dtype != f"*{element}" for name in floats):
            yield guess.typed(floats, f"*{element}")
    types = guess.blame.first(n for n, a in guess.arguments.items() if a.value == "tl.float32")
    if types:
        yield guess.valued(dict.fromkeys(types, "tl.bfloat16"))
    for element in _FLOATS[:2]:
        if near:
            yield guess.typed(near, f"*{element}")


def _integer_data(guess: _Guess) -> Iterable[AssumedLaunch]:
    """Integer arithmetic on floats: the data or the scalar is an integer."""
    near = guess.blame.first(guess.pointers(*_FLOATS))
    scalars = guess.blame.first(n for n, a in guess.arguments.items() if a.dtype == "fp32")
    named = [name for name in scalars if name in guess.blame.named]
    if named:
        yield guess.typed(named, "i32")
    reals = {
        a.name: "4"
        for a in guess.guessed()
        if a.name in guess.blame.named and re.fullmatch(r"-?[\d.]+(?:e-?\d+)?", a.value or "")
        and not (a.value or "").lstrip("-").isdigit()
    }  # fmt: skip
    if reals:
        yield guess.valued(reals)
    types = guess.blame.first(n for n, a in guess.arguments.items() if a.value == "tl.float32")
    for name in near[:3]:
        yield guess.typed([name], "*i32")
    if types:
        yield guess.valued(dict.fromkeys(types, "tl.int32"))
    if scalars:
        yield guess.typed(scalars, "i32")
    if len(near) > 1:
        yield guess.typed(near, "*i32")


def _integer_dot(guess: _Guess) -> Iterable[AssumedLaunch]:
    """An accumulator of int32: the operands of the dot are int8."""
    near = guess.blame.first(guess.pointers(*_FLOATS))
    if len(near) > 1:
        yield guess.typed(near[:2], "*i8")
        yield guess.typed(near, "*i8")


def _integer_offset(guess: _Guess) -> Iterable[AssumedLaunch]:
    """A float added to an address: what the float is made of holds integers."""
    direct = set(guess.blame.named)
    scalars = [n for n, a in guess.arguments.items() if a.dtype == "fp32" and n in direct]
    if scalars:
        yield guess.typed(scalars, "i32")
    loaded = [n for n in guess.blame.first(guess.pointers(*_FLOATS)) if n not in direct]
    for name in loaded[:2]:
        yield guess.typed([name], "*i32")
    if len(loaded) > 1:
        yield guess.typed(loaded, "*i32")


def _float_data(guess: _Guess) -> Iterable[AssumedLaunch]:
    """Float arithmetic on integers: the data or the scalar is a float."""
    near = guess.blame.first(guess.pointers("i1", "i8", "i32", "i64"))
    scalars = guess.blame.first(n for n, a in guess.arguments.items() if a.dtype == "i32")
    for name in near[:3]:
        yield guess.typed([name], "*fp32")
    for name in scalars[:2]:
        yield guess.typed([name], "fp32")


def _integer_widths(guess: _Guess) -> Iterable[AssumedLaunch]:
    """One side int32 and the other int64."""
    for old, new in (("i64", "i32"), ("i32", "i64")):
        near = guess.blame.first(guess.pointers(old))
        if near:
            yield guess.typed(near, f"*{new}")
    near = guess.blame.first(n for n, a in guess.arguments.items() if a.dtype == "i32")
    if near:
        yield guess.typed(near, "i64")


def _missing_pointer(guess: _Guess) -> Iterable[AssumedLaunch]:
    """A number or None where an address is needed."""
    scalars = [n for n, a in guess.arguments.items() if a.dtype in ("i32", "i64", "fp32")]
    element = (guess.pointers(*_FLOATS) or [""])[0]
    dtype = guess.arguments[element].dtype if element else "*fp32"
    for name in guess.blame.first([*scalars, *guess.absent()])[:4]:
        yield guess.typed([name], dtype)


def _not_a_pointer(guess: _Guess) -> Iterable[AssumedLaunch]:
    """An address where a number is needed."""
    for name in guess.blame.first(guess.pointers())[:3]:
        yield guess.typed([name], "i32")
        yield guess.typed([name], "fp32")


def _absent(guess: _Guess) -> Iterable[AssumedLaunch]:
    """None where a value is needed: pass what was left out."""
    names = guess.blame.first(guess.absent())
    floats = guess.pointers(*_FLOATS)
    dtype = guess.arguments[floats[0]].dtype if floats else "*fp32"
    for name in names[:3]:
        yield guess.typed([name], dtype)
        yield guess.typed([name], "i32")
    for argument in guess.guessed():
        if argument.value == "None" and argument.name not in names:
            yield guess.valued({argument.name: "64"})
    if len(names) > 1:
        yield guess.typed(names, dtype)


def _undefined(guess: _Guess) -> Iterable[AssumedLaunch]:
    """A name that is assigned under a flag which is off, or for another mode."""
    guessed = {argument.name for argument in guess.guessed()}
    for name, literal in guess.blame.flags:
        if name not in guessed:
            continue
        if literal is None:
            yield guess.valued({name: "True"})
        elif _is_literal(literal):
            yield guess.valued({name: literal})


def _power_of_two(guess: _Guess) -> Iterable[AssumedLaunch]:
    near = guess.numbers(guess.blame.first(guess.numbers())) or guess.numbers()
    odd = {n: v for n, v in near.items() if v & (v - 1) or v < 1}
    if odd:
        yield guess.valued({n: str(1 << max(v - 1, 0).bit_length()) for n, v in odd.items()})
    for name, value in list(near.items())[:2]:
        yield guess.valued({name: "16" if value != 16 else "64"})
    if len(near) > 1:
        yield guess.valued(dict.fromkeys(near, "64"))


def _empty_range(guess: _Guess) -> Iterable[AssumedLaunch]:
    """A length that came out as nothing: a quotient of two guesses."""
    near = guess.numbers(guess.blame.first(guess.numbers()))
    for name, value in list(near.items())[:3]:
        yield guess.valued({name: str(max(value, 1) * 16)})
        yield guess.valued({name: "1"})


def _shapes(guess: _Guess) -> Iterable[AssumedLaunch]:
    """Blocks that do not fit each other: the same length for all that are near, then for all."""
    near = guess.numbers(guess.blame.first(guess.numbers()))
    for numbers in (near, guess.numbers()):
        blocks = {n: v for n, v in numbers.items() if v >= 16}
        for value in sorted(set(blocks.values()), reverse=True)[:2]:
            if len(blocks) > 1:
                yield guess.valued(dict.fromkeys(blocks, str(value)))
    for name in [n for n in guess.numbers() if n not in guess.blame.named and "BLOCK" in n][:2]:
        yield guess.valued({name: "1"})
    for name, value in list(near.items())[:2]:
        yield guess.valued({name: str(value // 2 if value > 16 else value * 2)})


def _larger(guess: _Guess) -> Iterable[AssumedLaunch]:
    """A dot whose operands are too small."""
    near = guess.numbers(guess.blame.first(guess.numbers())) or guess.numbers()
    small = {n: v for n, v in near.items() if v < 32}
    if small:
        yield guess.valued(dict.fromkeys(small, "32"))


def _smaller(guess: _Guess) -> Iterable[AssumedLaunch]:
    """Too much of the card: fewer stages, then smaller blocks."""
    stages = dict(guess.launch.options).get("num_stages")
    free = stages is None or any(n.startswith("num_stages") for n in _option_notes(guess.launch))
    if free and (stages is None or stages > 2):
        yield guess.with_option("num_stages", 2)
    blocks = {n: v for n, v in guess.numbers().items() if v >= 32}
    if blocks:
        largest = max(blocks.values())
        yield guess.valued({n: str(v // 2) for n, v in blocks.items() if v == largest})
    if free and stages == 2:
        yield guess.with_option("num_stages", 1)


def _stored_element(guess: _Guess) -> Iterable[AssumedLaunch]:
    """A block stored to a pointer of another element type: the pointer is to what is stored."""
    found = re.search(r"value element type\((\w+)\)", guess.blame.message)
    near = guess.blame.first(guess.pointers())
    if found is not None and near:
        yield guess.typed(near[:1], f"*{found[1].replace('uint', 'u').replace('int', 'i')}")


def _atomics(guess: _Guess) -> Iterable[AssumedLaunch]:
    near = guess.blame.first(guess.pointers())
    for dtype in ("*fp32", "*i32"):
        if near:
            yield guess.typed(near[:1], dtype)


def _flags_on(guess: _Guess) -> Iterable[AssumedLaunch]:
    off = [a.name for a in guess.guessed() if a.value == "False"]
    for name in guess.blame.first(off)[:2]:
        yield guess.valued({name: "True"})
    if off:
        yield guess.valued(dict.fromkeys(off, "True"))


def _anything(guess: _Guess) -> Iterable[AssumedLaunch]:
    """No message that is known: the alternatives that help most often."""
    yield from list(_float_types(guess))[:2]
    yield from _flags_on(guess)


def _is_literal(text: str) -> bool:
    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return False
    return True


def _message(*parts: str) -> re.Pattern[str]:
    return re.compile("|".join(parts))


_REAL = r"(?:triton\.language\.)?(?:fp|bf|float|bfloat)"
_ANSWERS: tuple[tuple[re.Pattern[str], _Answer], ...] = (
    (_message("is not defined", "has no attribute 'type'"), _undefined),
    (_message("NoneType", r"type None\b", "None of type",
              "constexpr_type. object has no attribute"), _absent),
    (_message("Unsupported ptr type", "Expected `base` to be a pointer",
              "Pointer argument of store", "has no attribute 'element_ty'"), _missing_pointer),
    (_message(rf"pointer<.*> and {_REAL}", rf"{_REAL}\d+ and pointer<"), _integer_offset),
    (_message("add pointers together", r"pointer<.*> and (?:pointer|triton\.language\.int)",
              r"int\d+ and pointer<", "unexpected type pointer", "cannot cast pointer",
              "bounds and step must all be ints.*pointer", "from pointer", "of type pointer"),
     _not_a_pointer),
    (_message(rf"initial type int\d+ but is re-assigned to {_REAL}",
              rf"Ternary expression.*(?:int\d+ and {_REAL}|{_REAL}\d+ and int)",
              rf"initial type <\[[\d, ]*\], int\d+> but is re-assigned to <\[[\d, ]*\], {_REAL}"),
     _integer_data),
    (_message(r"initial type <\[.*\], int32> but is re-assigned to <\[.*\], (?:fp|bf)"),
     _integer_dot),
    (_message("same dtype", "[Mm]ismatched type", "but is re-assigned to", "Unsupported lhs dtype",
              "Unsupported rhs dtype", "Inconsistent return types", "must have the same type",
              "only .* supported", "First input", "Both operands", "dtype mismatch"),
     _float_types),
    (_message(rf"unexpected type {_REAL}", rf"invalid operands of type .*{_REAL}\d+",
              r"wrong type argument to unary", "Cannot use /, #, or %",
              rf"must all be ints, are \(.*{_REAL}", "arange's arguments"), _integer_data),
    (_message(rf"Ternary expression.*(?:int\d+ and {_REAL}|{_REAL}\d+ and int)",
              "floating scalar type", "Expected dtype .*but got int", "Unexpected dtype int",
              r"'fp32'.*'bf16'.* but got int"), _float_data),
    (_message("int32.*int64", "int64.*int32", "i32.*i64", "i64.*i32"), _integer_widths),
    (_message("power of (?:2|two)"), _power_of_two),
    (_message("end argument must be greater", "must be positive", "division or modulo by zero",
              "by zero"), _empty_range),
    (_message("incompatible dimensions", "Cannot broadcast", "cannot change total number",
              "to have shape", "[Ii]nput shapes?", "not compatible", "rank mismatch",
              "shape mismatch"), _shapes),
    (_message(r"K >= \d+", r"N >= \d+", r"M >= \d+"), _larger),
    (_message("Block element type"), _stored_element),
    (_message("maximum tensor numel"), _smaller),
    (_message(r"atomic_\w+ (?:does not support|not supported)"), _atomics),
    (_message("static assert", "CompileTimeAssertion"), _flags_on),
)  # fmt: skip
