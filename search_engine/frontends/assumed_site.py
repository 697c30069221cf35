"""The launch site that stands for all launches of a kernel, and what it says about arguments."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field

from search_engine.domain.kernel import Kernel, Launch, Module, Unit
from search_engine.frontends.assumed_host import (
    GIVEN,
    UNKNOWN,
    HostScope,
    Unknown,
    annotation_of,
    enclosing_function,
    parameter_default,
    parse_text,
)

_TENSOR_ONLY = frozenset({
    "stride", "shape", "dtype", "device", "numel", "data_ptr", "contiguous", "size",
    "is_contiguous", "view", "reshape", "dim", "ndim", "element_size", "is_cuda", "new_empty",
    "new_zeros", "untyped_storage", "clone", "detach",
})  # fmt: skip
_MAKES_TENSORS = re.compile(
    r"(?:^|\.)(?:empty|zeros|ones|full|rand\w*|arange|tensor|empty_like|zeros_like|ones_like|"
    r"full_like|empty_strided|new_\w+|contiguous|clone|view|reshape|cumsum|argsort|sort)\("
)
_INTEGER_TEXT = re.compile(r"\.(?:stride|size|numel|dim)\(|\.(?:shape|ndim)\b|//|\blen\(|cdiv")
_FLOAT_TEXT = re.compile(r"\*\*\s*-|\bmath\.|\bfloat\(|(?<!/)/(?!/)|\d\.\d|\de-\d")
_BOOL_TEXT = re.compile(r"\bis not\b|\bis None\b|^not\b|==|!=|\bTrue\b|\bFalse\b|\bis_\w+\(")
_KINDS = {"bool": "bool", "int": "int", "float": "float"}
_STRIDE = re.compile(r"^(?P<tensor>[\w.]+)\.stride\(\s*(?P<axis>-?\d+)\s*\)$|"
                     r"^(?P<other>[\w.]+)\.stride\(\)\[\s*(?P<at>-?\d+)\s*\]$")  # fmt: skip


@dataclass(slots=True)
class Site:
    """One launch, its arguments by the names of the parameters; no ``launch``: none was found.

    ``texts`` holds the arguments that can be read; ``options`` keywords that are no parameters.
    """

    scope: HostScope
    launch: Launch | None = None
    texts: dict[str, str] = field(default_factory=dict[str, str])
    options: dict[str, str] = field(default_factory=dict[str, str])
    _tensors: set[str] = field(default_factory=set[str])

    def value(self, parameter: str) -> object:
        """The value passed for a parameter, UNKNOWN if the text does not tell."""
        text = self.texts.get(parameter)
        return UNKNOWN if text is None else self.scope.text_value(text)

    def kind(self, parameter: str) -> str | None:
        """``tensor``, ``int``, ``float``, ``bool`` or ``none`` as far as the text tells."""
        text = self.texts.get(parameter)
        if text is None:
            return None
        known = self.scope.text_value(text)
        if known is GIVEN or text in self._tensors:
            return "tensor"
        if known is None:
            return "none"
        if not isinstance(known, Unknown):
            return _KINDS.get(type(known).__name__)
        return self._by_text(text)

    def unit_stride(self, parameter: str, rows: frozenset[str]) -> bool:
        """True if the argument is the last stride of a tensor: 1 where it is contiguous.

        ``rows`` are pointers whose last axis the kernel steps through without a stride.
        """
        found = _stride(self.texts.get(parameter, ""))
        if found is None:
            return False
        tensor, axis = found
        if any(self.texts.get(name) == tensor for name in rows):
            return False
        others = [item for text in self.texts.values() if (item := _stride(text)) is not None]
        axes = {other for name, other in others if name == tensor}
        return axis == -1 or (axis > 0 and axis == max(axes) and -1 not in axes)

    def _by_text(self, text: str) -> str | None:
        function = self.scope.function
        annotation = annotation_of(function, text) if function is not None else None
        if annotation in ("int", "float", "bool"):
            return annotation
        if _BOOL_TEXT.search(text):
            return "bool"
        if _FLOAT_TEXT.search(text):
            return "float"
        if _INTEGER_TEXT.search(text):
            return "int"
        return "tensor" if _MAKES_TENSORS.search(text) else None


def launch_site(module: Module, unit: Unit) -> Site:
    """The launch of the unit's kernel to go by: in its entry, with all arguments readable."""
    tree = parse_text(module.text)
    kernel = unit.kernel
    launches = [launch for launch in module.launches if launch.kernel == kernel.name]
    if not launches:
        return Site(HostScope(tree))
    entry = unit.entry.qualified_name if unit.entry is not None else None
    launch = min(launches, key=lambda item: (item.entry != entry, item.opaque, item.span.start))
    line = launch.span.line + 1
    function = enclosing_function(tree, line)
    scope = HostScope(tree, function, line)
    texts, options = _bound(kernel, launch)
    tensors = _tensors(function) if function is not None else set[str]()
    return Site(scope, launch, texts, options, tensors)


def _bound(kernel: Kernel, launch: Launch) -> tuple[dict[str, str], dict[str, str]]:
    names = [parameter.name for parameter in kernel.parameters]
    texts: dict[str, str] = {}
    options: dict[str, str] = {}
    readable = True
    for position, argument in enumerate(launch.arguments):
        if argument.name is None:
            readable = readable and not argument.text.startswith("*")
            if readable and position < len(names):
                texts[names[position]] = argument.text
        elif argument.name in names:
            texts[argument.name] = argument.text
        else:
            options[argument.name] = argument.text
    return texts, options


def _tensors(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """Names that can only be tensors by what is done with them."""
    found: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute) and node.attr in _TENSOR_ONLY:
            if isinstance(node.value, ast.Name):
                found.add(node.value.id)
        elif isinstance(node, ast.Assign) and _makes_tensor(node.value):
            found.update(t.id for t in node.targets if isinstance(t, ast.Name))
    return found


def _makes_tensor(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and bool(_MAKES_TENSORS.search(ast.unparse(node.func) + "("))


def optional_at(site: Site, parameter: str) -> bool:
    """True if the launch passes a name whose default in the entry is None."""
    function, text = site.scope.function, site.texts.get(parameter)
    default = parameter_default(function, text) if function is not None and text else None
    return isinstance(default, ast.Constant) and default.value is None


def _stride(text: str) -> tuple[str, int] | None:
    match = _STRIDE.match(text.strip())
    if match is None:
        return None
    return match["tensor"] or match["other"], int(match["axis"] or match["at"])
