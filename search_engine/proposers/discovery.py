"""Find the meta-parameters of each kernel of a unit, by following values from kernel to text."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Iterator
from dataclasses import dataclass

from search_engine.proposers.autotune import ConfigList, config_list
from search_engine.proposers.blocks import Blocks, read_blocks
from search_engine.proposers.grid_literals import repeated_in_grid
from search_engine.proposers.insertion import (
    last_setting,
    local_place,
    option_place,
    override_place,
)
from search_engine.proposers.sites import (
    LaunchSite,
    Sites,
    bindings,
    defaults,
    integer,
    last_name,
    module_bindings,
    parameters,
)
from search_engine.proposers.tunable_types import Place, Purpose, Tunable, TunableKind
from search_engine.rules._base import Patch

_COUNT = re.compile(r"ROWS|COLS|HEADS|TOKENS|ITEMS|TILES|CHUNKS|PER_PROG|UNROLL|ITER", re.I)
_COUNTS = {Purpose.COUNT: 6, Purpose.GROUP: 5, Purpose.SPLIT: 7, Purpose.WARPS: 5}
"""Exponent of the largest power of two on the ladder."""
_STAGES = (1, 2, 3, 4, 5, 6)
_TILE_EXPONENTS = range(17)
_DOT_EXPONENTS = range(4, 9)
"""``tl.dot`` needs extents of at least 16; beyond 256 no operand fits beside another."""


def discover(text: str, sites: Sites) -> tuple[Tunable, ...]:
    """The tunables of every kernel of a unit; one value that feeds several names is one tunable."""
    found: list[Tunable] = []
    own = next(iter(sites.kernels), None)
    for name, node in sites.kernels.items():
        prefix = "" if name == own else f"{name}."
        reader = _KernelReader(Patch(text), text, sites, name, node, read_blocks(node), prefix)
        for tunable in reader.tunables():
            _add(found, tunable)
    return tuple(found)


def _add(found: list[Tunable], new: Tunable) -> None:
    for index, old in enumerate(found):
        if new.kind is TunableKind.CONFIG or old.places[0] != new.places[0]:
            continue
        ladder = tuple(value for value in old.ladder if value in new.ladder)
        places = tuple(dict.fromkeys((*old.places, *new.places)))
        aliases = tuple(dict.fromkeys((*old.aliases, new.name, *new.aliases)))
        found[index] = dataclasses.replace(old, ladder=ladder, places=places, aliases=aliases)
        return
    found.append(new)


@dataclass(frozen=True, slots=True)
class _Source:
    """Where a parameter's value stands; ``name`` is the local or module name that holds it."""

    kind: TunableKind
    node: ast.expr
    places: tuple[Place, ...]
    name: str | None = None


@dataclass(frozen=True, slots=True)
class _KernelReader:
    patch: Patch
    text: str
    sites: Sites
    name: str
    node: ast.FunctionDef
    blocks: Blocks
    prefix: str

    def tunables(self) -> Iterator[Tunable]:
        configs = config_list(self.sites.tree, self.node)
        for parameter in self.blocks.constexprs:
            source = self._source(parameter, configs)
            if source is not None and (found := self._tunable(parameter, source)) is not None:
                yield found
        yield from self._options(configs)

    def _tunable(self, parameter: str, source: _Source) -> Tunable | None:
        number = integer(source.node)
        names = [name for name in (parameter, source.name) if name is not None]
        launches = self.sites.launches_of(self.name)
        follows = bool(launches) and all(launch.grid_mentions(names) for launch in launches)
        links: tuple[Place, ...] | None = ()
        in_grid = not re.search("GROUP", parameter, re.I) or parameter in self.blocks.shaped
        if in_grid and not follows and number is not None and self.sites.entry is not None:
            links = repeated_in_grid(
                self.patch, self.sites.entry, launches, self.blocks, parameter, number
            )
        purpose = self._purpose(parameter, follows or bool(links))
        if purpose is None:
            return None
        ladder = () if links is None else self._ladder(parameter, purpose, number)
        value = str(number) if number is not None else ast.unparse(source.node)
        aliases = (self.prefix + source.name,) if source.name not in (None, parameter) else ()
        return Tunable(
            self.prefix + parameter, value, source.kind, purpose,
            (*source.places, *(links or ())), ladder, self.name, aliases,
        )  # fmt: skip

    def _purpose(self, parameter: str, follows: bool) -> Purpose | None:
        if parameter not in self.blocks.used:
            return None
        if parameter in self.blocks.shaped:
            repeated = follows or parameter in self.blocks.looped
            return Purpose.TILE if repeated else Purpose.COVER
        if re.search("SPLIT", parameter, re.I):
            return Purpose.SPLIT if follows else None
        if re.search("GROUP", parameter, re.I):
            return Purpose.GROUP
        return Purpose.COUNT if follows and _COUNT.search(parameter) else None

    def _ladder(self, parameter: str, purpose: Purpose, number: int | None) -> tuple[int, ...]:
        if purpose is Purpose.COVER:
            return ()
        if purpose is not Purpose.TILE:
            return _with(number, [1 << e for e in range(_COUNTS[purpose] + 1)])
        values = [1 << e for e in (_DOT_EXPONENTS if self.blocks.dots else _TILE_EXPONENTS)]
        if parameter in self.blocks.unbounded:
            # Without a mask the kernel only works where the block divides the axis: a larger block
            # would refuse inputs that the present one accepts.
            values = [v for v in values if number is not None and number % v == 0]
        return _with(number, values)

    def _source(self, parameter: str, configs: ConfigList | None) -> _Source | None:
        launches = self.sites.launches_of(self.name)
        passed = [launch.arguments.get(parameter) for launch in launches]
        values = [value for value in passed if value is not None]
        if values:
            return self._passed(values) if len(values) == len(passed) else None
        if any(launch.opaque for launch in launches):
            return None
        if configs is not None and parameter in configs.settings[0].parameters:
            node = ast.parse(configs.settings[0].parameters[parameter], mode="eval").body
            return _Source(TunableKind.CONFIG, node, (self._place(configs.expression),))
        default = defaults(self.node).get(parameter)
        if integer(default) is None or default is None:
            return None
        return _Source(TunableKind.SIGNATURE_DEFAULT, default, (self._place(default),))

    def _passed(self, values: list[ast.expr]) -> _Source | None:
        first = values[0]
        if any(ast.unparse(value) != ast.unparse(first) for value in values):
            return None
        if isinstance(first, ast.Name):
            return self._named(first.id)
        if integer(first) is None:
            return None
        places = tuple(self._place(value) for value in values)
        return _Source(TunableKind.LAUNCH_ARGUMENT, first, places)

    def _named(self, name: str) -> _Source | None:
        entry = self.sites.entry
        if entry is None:
            return None
        values = bindings(entry, name)
        if any(argument.arg == name for argument in parameters(entry)):
            default = defaults(entry).get(name)
            if values or default is None or integer(default) is None:
                return None
            return _Source(TunableKind.ENTRY_DEFAULT, default, (self._place(default),), name)
        if len(values) == 1 and values[0] is not None:
            value = values[0]
            if integer(value) is None and not _is_choice(value):
                return None
            return _Source(TunableKind.ENTRY_CONSTANT, value, (self._place(value),), name)
        return self._overridden(name, values) if values else self._module_constant(name)

    def _overridden(self, name: str, values: list[ast.expr | None]) -> _Source | None:
        """A local that branches of the entry set to one number or another."""
        entry = self.sites.entry
        if entry is None or any(integer(value) is None for value in values):
            return None
        calls = [launch.call for launch in self.sites.launches]
        last = last_setting(self.patch, entry, name, calls)
        if isinstance(last, ast.Assign) and integer(last.value) is not None:
            place = self._place(last.value)
            return _Source(TunableKind.ENTRY_CONSTANT, last.value, (place,), name)
        place = last and override_place(self.patch, last, name)
        node = ast.Name(name, ast.Load())
        return place and _Source(TunableKind.ENTRY_CONSTANT, node, (place,), name)

    def _module_constant(self, name: str) -> _Source | None:
        """A constant of the module may be shadowed in the entry if nothing else depends on it."""
        values = module_bindings(self.sites.tree, name)
        entry = self.sites.entry
        if entry is None or len(values) != 1 or values[0] is None or integer(values[0]) is None:
            return None
        others = [
            node
            for node in ast.walk(self.sites.tree)
            if isinstance(node, ast.FunctionDef) and node is not entry and _reads(node, name)
        ]
        called = {last_name(n.func) for n in ast.walk(entry) if isinstance(n, ast.Call)}
        called |= set(self.sites.kernels)
        if any(node.name in called or _holds(node, entry) for node in others):
            return None
        place = local_place(self.patch, entry, name)
        return place and _Source(TunableKind.MODULE_CONSTANT, values[0], (place,), name)

    def _options(self, configs: ConfigList | None) -> Iterator[Tunable]:
        launches = self.sites.launches_of(self.name)
        if configs is None and (not launches or any(launch.opaque for launch in launches)):
            return
        ladders = [("num_warps", Purpose.WARPS), ("num_stages", Purpose.STAGES)]
        for option, purpose in ladders:
            ladder = self._option_ladder(purpose)
            if configs is not None:
                value = configs.settings[0].options.get(option)
                kind, places = TunableKind.CONFIG, (self._place(configs.expression),)
            else:
                value = self._option_value(launches[0], option)
                kind = TunableKind.LAUNCH_OPTION
                places = tuple(self._option(launch, option) for launch in launches)
            yield Tunable(self.prefix + option, value, kind, purpose, places, ladder, self.name)

    def _option_ladder(self, purpose: Purpose) -> tuple[int, ...]:
        if purpose is Purpose.STAGES:
            # Stages pipeline the loads of a loop; without one they change nothing.
            return _STAGES if self.blocks.loops else ()
        return _with(None, [1 << e for e in range(_COUNTS[purpose] + 1)])

    def _option_value(self, launch: LaunchSite, option: str) -> str | None:
        node = launch.options.get(option)
        if node is None:
            return None
        number = integer(node)
        return str(number) if number is not None else self.patch.source(node)

    def _option(self, launch: LaunchSite, option: str) -> Place:
        if option in launch.options:
            return self._place(launch.options[option])
        return option_place(self.patch, self.text, launch.call, option)

    def _place(self, node: ast.AST) -> Place:
        return Place(*self.patch.span(node))


def _with(number: int | None, values: list[int]) -> tuple[int, ...]:
    return tuple(sorted({*values, *([number] if number is not None else [])}))


def _is_choice(node: ast.expr) -> bool:
    """``min(triton.next_power_of_2(n), 1024)`` or ``128 if wide else 64``: others would do too."""
    if isinstance(node, ast.IfExp):
        return integer(node.body) is not None and integer(node.orelse) is not None
    return (
        isinstance(node, ast.Call)
        and last_name(node.func) == "min"
        and any(integer(argument) is not None for argument in node.args)
    )


def _reads(function: ast.FunctionDef, name: str) -> bool:
    """True if a function reads a name that is neither its parameter nor its local."""
    if bindings(function, name) or any(item.arg == name for item in parameters(function)):
        return False
    return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(function))


def _holds(outer: ast.AST, inner: ast.AST) -> bool:
    return any(node is inner for node in ast.walk(outer))
