"""What is said about a launch that was inferred from the text: one sentence for each guess."""

from __future__ import annotations

from collections.abc import Iterable

from search_engine.domain.job import AssumedArgument

WRITTEN = "written at the launch"
"""Origin of an argument that is no guess: the launch site writes its value."""

_WHOLE = ("i32", "i64")


def assumption_notes(
    arguments: Iterable[AssumedArgument], options: Iterable[str], launched: bool
) -> tuple[str, ...]:
    """Notes in the order: types, constants, options, sizes.

    ``options`` are Triton's options that were not read at a launch, in words (``num_warps = 8``);
    ``launched`` is False if no launch of the kernel was found.
    """
    listed = tuple(arguments)
    notes = [] if launched else ["assumed every argument: nothing in this file launches the kernel"]
    notes.extend(_types(listed))
    notes.extend(_constants(listed))
    notes.extend(f"assumed {option}" for option in options)
    plain = [a.name for a in listed if a.dtype in _WHOLE and not a.divisible_by_16]
    if plain:
        notes.append(f"assumed {', '.join(plain)} not divisible by 16")
    return tuple(notes)


def _types(arguments: tuple[AssumedArgument, ...]) -> list[str]:
    behind: dict[str, list[str]] = {}
    absent: list[str] = []
    for argument in arguments:
        if argument.dtype.startswith("*"):
            behind.setdefault(argument.dtype[1:], []).append(argument.name)
        elif argument.value == "None" and argument.origin != WRITTEN:
            absent.append(argument.name)
    notes = [f"assumed {element} behind {', '.join(names)}" for element, names in behind.items()]
    return [*notes, f"assumed {', '.join(absent)} = None"] if absent else notes


def _constants(arguments: tuple[AssumedArgument, ...]) -> list[str]:
    return [
        f"assumed {argument.name} = {argument.value}{_after(argument.origin)}"
        for argument in arguments
        if argument.dtype == "constexpr" and argument.value != "None" and argument.origin != WRITTEN
    ]


def _after(origin: str) -> str:
    return f", {origin}" if origin else ""
