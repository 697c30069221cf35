"""What a launch of a kernel probably looks like, told from the text alone.

For kernels that nobody declared a workload for. Pointers are what reaches loads and stores; element
types, scalars and constants follow from their use, the launch site, the first autotune
configuration, defaults and, last, from names (``assumed_roles``). Every guess is a sentence in the
notes of the launch. The worker may still correct a guess that does not compile.
"""

from __future__ import annotations

import ast
import textwrap
from dataclasses import replace
from typing import cast

from search_engine.domain.assumption import WRITTEN, assumption_notes
from search_engine.domain.job import AssumedArgument, AssumedLaunch
from search_engine.domain.kernel import Kernel, Module, Parameter, Unit
from search_engine.frontends.assumed_host import GIVEN, HostScope, Symbol, Unknown
from search_engine.frontends.assumed_reader import read_kernel
from search_engine.frontends.assumed_roles import constant_by_role, is_block, is_stride
from search_engine.frontends.assumed_site import Site, launch_site, optional_at
from search_engine.frontends.assumed_tuning import (
    OPTIONS,
    Tuned,
    first_configuration,
    heuristic_subjects,
    heuristic_value,
    unspecialised,
)
from search_engine.frontends.assumed_types import Pointers, pointer_types, scalar_type
from search_engine.frontends.assumed_uses import (
    ConstantUse,
    Evidence,
    KernelUses,
    NamedConstant,
)

_ALIGNMENT = 16
_LAST_STRIDE = "the last stride of a contiguous tensor"
_INT32_LIMIT = 1 << 31


def assumed_launch(module: Module, unit: Unit) -> AssumedLaunch | str:
    """A probable launch of the unit's kernel; a string is the reason why there is none.

    Constants that are not literals are written as names: ``tl.float32``, or a device function of
    the module.
    """
    kernel = unit.kernel
    if any("gluon" in decorator.name for decorator in kernel.decorators):
        return "a Gluon kernel: its layouts cannot be assumed"
    if any(parameter.name.startswith("*") for parameter in kernel.parameters):
        return "the kernel takes a variable number of arguments"
    function = _function(module, kernel)
    if function is None:
        return "the kernel does not parse"
    constants = frozenset(item.name for item in kernel.parameters if item.constexpr)
    helpers = {
        helper.name: node
        for helper in unit.helpers
        if (node := _function(module, helper)) is not None
    }
    if _only_called(module, kernel):
        return "a helper: other kernels of the file call it and nothing launches it"
    uses = read_kernel(function, constants, helpers)
    if uses.descriptors:
        names = ", ".join(sorted(uses.descriptors))
        return f"{names}: a tensor descriptor made by the host, whose block cannot be assumed"
    if uses.tuples:
        return f"{', '.join(sorted(uses.tuples))}: a tuple, whose length cannot be assumed"
    return _Guess(kernel, uses, launch_site(module, unit)).launch()


def _only_called(module: Module, kernel: Kernel) -> bool:
    called = any(kernel.name in other.calls for other in module.kernels if other is not kernel)
    return called and not any(launch.kernel == kernel.name for launch in module.launches)


def _function(module: Module, kernel: Kernel) -> ast.FunctionDef | None:
    data = module.text.encode(errors="surrogatepass")
    start = data.rfind(b"\n", 0, kernel.span.start) + 1
    text = data[start : kernel.span.end].decode(errors="replace")
    indented = text[:1] in " \t"
    try:
        tree = ast.parse("if 1:\n" + text if indented else textwrap.dedent(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    found = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    return next((node for node in found if node.name == kernel.name), None)


class _Guess:
    """Puts the arguments of one launch together and keeps the notes."""

    def __init__(self, kernel: Kernel, uses: KernelUses, site: Site) -> None:
        self._kernel, self._uses, self._site = kernel, uses, site
        self._module = HostScope(site.scope.tree)
        self._tuned: Tuned = first_configuration(kernel, self._module)
        lengths = {name for name, use in uses.constants.items() if use.shape}
        lengths.update(p.name for p in kernel.parameters if p.constexpr and is_block(p.name))
        self._blocks = len(lengths) + (1 if uses.has_dot else 0)
        self._pointers: Pointers = pointer_types(kernel.parameters, uses, site)
        self._fixed, self._unaligned = unspecialised(kernel)
        self._strides = _last_strides(kernel) if site.launch is None else frozenset[str]()
        self._absent = self._left_out()
        self._values: dict[str, object] = {name: None for name in self._absent}  # noqa: C420
        """Values of arguments that are known so far; heuristics look at them."""

    def launch(self) -> AssumedLaunch:
        """The whole launch. Constants come last: they may be computed from other arguments."""
        parameters = self._kernel.parameters
        ordered = sorted(parameters, key=lambda parameter: parameter.constexpr)
        made = {parameter.name: self._argument(parameter) for parameter in ordered}
        arguments = tuple(made[parameter.name] for parameter in parameters)
        options = self._options()
        launch = self._site.launch
        notes = assumption_notes(arguments, self._option_notes(options), launch is not None)
        return AssumedLaunch(
            kernel=self._kernel.qualified_name,
            arguments=arguments,
            options=tuple(options.items()),
            line=launch.span.line if launch is not None else None,
            notes=notes,
        )

    def _left_out(self) -> frozenset[str]:
        """Optional pointers that are None: passed so, or asked about and not needed."""
        site = self._site
        asked = set(heuristic_subjects(self._kernel, self._module).values())
        return frozenset(
            name
            for name in self._pointers.elements
            if site.kind(name) == "none"
            or (name in asked | self._uses.optional and optional_at(site, name))
            or (name in asked and site.kind(name) != "tensor")
        )

    def _argument(self, parameter: Parameter) -> AssumedArgument:
        name = parameter.name
        if parameter.constexpr:
            return self._constant(parameter)
        if name in self._absent:
            return AssumedArgument(name, "constexpr", "None", origin=self._why_absent(name))
        if name in self._pointers.elements:
            self._values[name] = GIVEN
            aligned = name not in self._fixed | self._unaligned
            return AssumedArgument(name, f"*{self._pointers.elements[name]}", None, aligned)
        return self._scalar(parameter)

    def _scalar(self, parameter: Parameter) -> AssumedArgument:
        name, known = parameter.name, self._site.value(parameter.name)
        if name not in self._site.texts and parameter.default is not None:
            known = self._module.text_value(parameter.default)
        used = self._uses.parameters.get(name, set[Evidence]())
        if known is None and not used & {Evidence.INTEGER, Evidence.FLOAT}:
            return AssumedArgument(name, "constexpr", "None", origin=self._why_absent(name))
        dtype = scalar_type(parameter, self._uses, self._site)
        if dtype not in ("i32", "i64"):
            return AssumedArgument(name, dtype)
        unit = self._unit_stride(name)
        known = 1 if unit else known
        if not isinstance(known, int) or name in self._fixed:
            return AssumedArgument(name, dtype)
        self._values[name] = known
        if known == 1:
            return AssumedArgument(name, "constexpr", "1", origin=_LAST_STRIDE if unit else WRITTEN)
        dtype = "i64" if abs(known) >= _INT32_LIMIT else dtype
        divisible = known % _ALIGNMENT == 0 and name not in self._unaligned
        return AssumedArgument(name, dtype, None, divisible)

    def _constant(self, parameter: Parameter) -> AssumedArgument:
        value, origin = self._choice(parameter)
        self._values[parameter.name] = value
        return AssumedArgument(parameter.name, "constexpr", _text(value), origin=origin)

    def _choice(self, parameter: Parameter) -> tuple[object, str]:
        """A constant's value, and where it was read."""
        name, text = parameter.name, self._site.texts.get(parameter.name)
        if name in self._tuned.constants:
            return self._tuned.constants[name], "from its first configuration"
        use = self._uses.constants.get(name, ConstantUse())
        passed = self._site.value(name)
        if _usable(passed) and not (passed is None and (use.shape or use.arithmetic)):
            return passed, WRITTEN if text == _text(passed) else "as launched"
        ruled = heuristic_value(self._kernel, self._module, name, self._values)
        if _usable(ruled):
            return ruled, "by its heuristic"
        if parameter.default is not None and text is None:
            default = self._module.text_value(parameter.default)
            if _usable(default):
                return default, "its default"
        if self._unit_stride(name):
            return 1, _LAST_STRIDE
        if use.called and text is not None and text.isidentifier():
            return Symbol(text), "as launched"
        return constant_by_role(name, self._resolved(use), self._blocks), ""

    def _why_absent(self, name: str) -> str:
        return WRITTEN if self._site.texts.get(name) == "None" else ""

    def _unit_stride(self, name: str) -> bool:
        """True for the last stride of a tensor whose lanes lie along the axis."""
        evidence = self._uses.parameters.get(name, set[Evidence]())
        if Evidence.UNIT in evidence:
            return True
        spread = Evidence.SPREAD in evidence
        last = name in self._strides or self._site.unit_stride(name, self._pointers.rows)
        return spread and last

    def _resolved(self, use: ConstantUse) -> ConstantUse:
        """The use with constants of the module replaced by their values."""
        compared: list[object] = []
        for item in use.compared:
            value = self._module.module_name(item.name) if isinstance(item, NamedConstant) else item
            if not isinstance(value, (Unknown, Symbol)):
                compared.append(value)
        return replace(use, compared=compared)

    def _options(self) -> dict[str, int]:
        found: dict[str, int] = dict(self._tuned.options)
        for name, text in self._site.options.items():
            value = self._site.scope.text_value(text)
            if name in OPTIONS and isinstance(value, int) and not isinstance(value, bool):
                found[name] = value
        return found

    def _option_notes(self, options: dict[str, int]) -> list[str]:
        return [
            f"{name} = {value}, from its first configuration"
            for name, value in options.items()
            if name in self._tuned.options and name not in self._site.options
        ]


def _last_strides(kernel: Kernel) -> frozenset[str]:
    """The last of each group of strides that differ in one letter: ``stride_ak`` after ``_am``."""
    groups: dict[str, list[str]] = {}
    for parameter in kernel.parameters:
        if is_stride(parameter.name):
            groups.setdefault(parameter.name[:-1], []).append(parameter.name)
    return frozenset(names[-1] for names in groups.values() if len(names) > 1)


def _usable(value: object) -> bool:
    """True for what can be written as the value of a constant."""
    if isinstance(value, tuple):
        parts = cast("tuple[object, ...]", value)
        return all(_usable(part) for part in parts)
    return value is None or isinstance(value, (bool, int, float, str, Symbol))


def _text(value: object) -> str:
    if isinstance(value, Symbol):
        return value.text
    if isinstance(value, tuple):
        parts = cast("tuple[object, ...]", value)
        return "(" + "".join(f"{_text(part)}, " for part in parts).rstrip() + ")"
    return repr(value)
