"""Reads the declarations above one entry into a workload."""

from __future__ import annotations

import ast
import builtins
import difflib
import keyword
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from search_engine.domain.kernel import Parameter
from search_engine.domain.workload import (
    Argument,
    Case,
    Reference,
    TensorArgument,
    Workload,
    WorkloadProblem,
    WorkloadSource,
)
from search_engine.frontends.declaration_arguments import (
    NamedValue,
    expression_names,
    free_names,
    named_extents,
    named_value,
    scalar,
    tensor,
)
from search_engine.frontends.declaration_lines import (
    Declaration,
    DeclarationError,
    split_items,
)

OPTIONS = ("weight", "grid", "block", "shared", "template")
"""Names that are options of a case unless their value is a tensor."""
ALLOWANCES = ("lowers-precision", "any-tie")

_BOUND = re.compile(
    r"^(?:def|class)[ \t]+(\w+)|^(\w+)[ \t]*(?::[^=\n]+)?=(?!=)"
    r"|^(?:from[ \t]+[\w.]+[ \t]+)?import[ \t]+([^\n]+)",
    re.M,
)
_OUTPUT = re.compile(r"([A-Za-z_]\w*)\s*=(?!=)\s*")
_RECEIVERS = ("self", "cls", "ctx")


@dataclass(frozen=True, slots=True)
class Owner:
    """The entry that the declarations stand above. ``text`` is the whole file."""

    name: str
    qualified_name: str
    parameters: tuple[Parameter, ...]
    method: bool
    text: str

    @property
    def required(self) -> tuple[str, ...]:
        """Parameters that a case must give."""
        return tuple(
            parameter.name
            for parameter in self.inputs
            if parameter.default is None and not parameter.name.startswith("*")
        )

    @property
    def inputs(self) -> tuple[Parameter, ...]:
        """Parameters without the receiver of a method."""
        first = self.parameters[:1]
        if self.method and first and first[0].name in _RECEIVERS:
            return self.parameters[1:]
        return self.parameters

    @property
    def takes_any(self) -> bool:
        """True if it has ``**kwargs``."""
        return any(parameter.name.startswith("**") for parameter in self.parameters)


def read_block(
    owner: Owner, block: list[Declaration]
) -> tuple[Workload, tuple[WorkloadProblem, ...]]:
    """The workload of the good lines, and the problems of the others."""
    reader = _BlockReader(owner)
    workload_lines = [item for item in block if item.keyword == "workload"]
    others = [item for item in block if item.keyword != "workload"]
    # Names from setup and call decide how cases are checked; cases decide what others may name.
    for declaration in sorted(others, key=lambda item: item.keyword not in ("setup", "call")):
        if declaration.keyword in ("setup", "call"):
            reader.read(declaration)
    for declaration in workload_lines:
        reader.read(declaration)
    for declaration in others:
        if declaration.keyword not in ("setup", "call"):
            reader.read(declaration)
    return reader.workload(), tuple(reader.problems)


@dataclass(slots=True)
class _BlockReader:
    owner: Owner
    problems: list[WorkloadProblem] = field(default_factory=list[WorkloadProblem])
    cases: list[Case] = field(default_factory=list[Case])
    references: list[Reference] = field(default_factory=list[Reference])
    setup: list[str] = field(default_factory=list[str])
    setup_names: set[str] = field(default_factory=set[str])
    call: str | None = None
    gradients: list[str] = field(default_factory=list[str])
    inplace: list[str] = field(default_factory=list[str])
    bytes_expression: str | None = None
    flops_expression: str | None = None
    tolerance_factor: float = 2.0
    allow: list[str] = field(default_factory=list[str])
    deterministic: bool = False
    given: set[str] = field(default_factory=set[str])
    """Names of arguments in any case, also in cases with a mistake."""

    def workload(self) -> Workload:
        """What was read so far."""
        return Workload(
            entry=self.owner.qualified_name,
            source=WorkloadSource.DECLARED,
            cases=tuple(self.cases),
            references=tuple(self.references),
            setup=tuple(self.setup),
            call=self.call,
            gradients=tuple(self.gradients),
            inplace=tuple(self.inplace),
            bytes_expression=self.bytes_expression,
            flops_expression=self.flops_expression,
            tolerance_factor=self.tolerance_factor,
            allow=tuple(self.allow),
            deterministic=self.deterministic,
        )

    def read(self, declaration: Declaration) -> None:
        """Take one line; a mistake becomes a problem."""
        try:
            handler = _HANDLERS.get(declaration.keyword)
            if handler is None:
                raise _unknown_keyword(declaration)
            handler(self, declaration)
        except DeclarationError as error:
            self.problems.append(declaration.problem(error))

    def known_names(self) -> set[str]:
        """What an expression beside the cases may name."""
        names = {"torch", "math", *dir(builtins)} | self.given | self.setup_names
        names |= {parameter.name.lstrip("*") for parameter in self.owner.parameters}
        names |= {f"{name}_" for name in names if keyword.iskeyword(name)}
        for case in self.cases:
            for argument in case.arguments:
                if isinstance(argument, TensorArgument):
                    names |= {extent.name for extent in argument.extents if extent.name}
        for function, value, imported in _BOUND.findall(self.owner.text):
            names |= {function, value}
            names |= {part.split(" as ")[-1].strip(" ()") for part in imported.split(",")}
        return names


def _workload(reader: _BlockReader, declaration: Declaration) -> None:
    items = [named_value(i) for i in split_items(declaration.text, declaration.text_offset)]
    if not items:
        raise DeclarationError(
            len(declaration.full), 1, "expected arguments, such as x=f32[4096,4096]"
        )
    owner = reader.owner
    sizes = named_extents(items)
    arguments: dict[str, Argument] = {}
    options: dict[str, NamedValue] = {}
    reader.given.update(item.name for item in items)
    for item in items:
        if item.name in OPTIONS and not item.is_tensor:
            target, name = options, item.name
        else:
            target, name = arguments, _argument_name(item, owner, checked=reader.call is None)
        if name in target:
            raise DeclarationError(item.offset, len(item.name), f"{name} is given twice")
        if target is options:
            options[name] = item
        elif item.is_tensor:
            arguments[name] = tensor(item, name, sizes)
        else:
            arguments[name] = scalar(item, name, sizes)
    reader.given.update(arguments)
    _check_complete(reader, declaration, arguments)
    reader.cases.append(_case(declaration, tuple(arguments.values()), options))


def _argument_name(item: NamedValue, owner: Owner, *, checked: bool) -> str:
    """The parameter an item belongs to; ``weight_`` stands for a scalar called ``weight``."""
    names = [parameter.name for parameter in owner.inputs]
    name = item.name
    plain = name.removesuffix("_")
    if name not in names and plain in names and (plain in OPTIONS or keyword.iskeyword(plain)):
        return plain
    if not checked or name in names or owner.takes_any:
        return name
    close = difflib.get_close_matches(name, names, 1)
    hint = f"; did you mean {close[0]}" if close else ""
    listed = ", ".join(names) or "nothing"
    raise DeclarationError(
        item.offset,
        len(name),
        f"no argument named {name}: {owner.name} takes {listed}{hint}",
        "KL802",
    )


def _check_complete(
    reader: _BlockReader, declaration: Declaration, arguments: dict[str, Argument]
) -> None:
    if reader.call is not None or reader.owner.method:
        return
    bound = arguments.keys() | reader.setup_names
    missing = [name for name in reader.owner.required if name not in bound]
    if missing:
        raise DeclarationError(
            0,
            len(declaration.full),
            f"no value for {', '.join(missing)}: {reader.owner.name} has no default for it; "
            f"add {missing[0]}=…",
            "KL802",
        )


def _case(
    declaration: Declaration, arguments: tuple[Argument, ...], options: dict[str, NamedValue]
) -> Case:
    weight = 1.0
    for name, item in options.items():
        if name == "weight":
            weight = _number(item.value, item.value_offset, zero_too=True)
        else:
            raise DeclarationError(
                item.offset,
                len(name),
                f"{name}= belongs to CUDA kernels; a Triton entry launches with its own grid. "
                f"For a parameter of that name write {name}_=",
            )
    return Case(arguments, weight, declaration.first_line)


def _number(text: str, offset: int, *, zero_too: bool) -> float:
    """A finite number above zero; for weights also zero itself."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf") or (value == 0 and not zero_too):
        wanted = "a number that is not negative" if zero_too else "a positive number"
        raise DeclarationError(offset, max(len(text), 1), f"expected {wanted}, got `{text}`")
    return value


def _reference(reader: _BlockReader, declaration: Declaration) -> None:
    text, offset = declaration.text, declaration.text_offset
    match = _OUTPUT.match(text)
    output = None
    if match is not None:
        output, text, offset = match.group(1), text[match.end() :], offset + match.end()
        names = reader.given | {parameter.name for parameter in reader.owner.inputs}
        if output not in names:
            listed = ", ".join(sorted(names)) or "nothing"
            raise DeclarationError(
                declaration.text_offset, len(output),
                f"no argument named {output}: {reader.owner.name} takes {listed}", "KL802",
            )  # fmt: skip
    _expression(reader, text, offset)
    reader.references.append(Reference(text, output, declaration.first_line))


def _expression(reader: _BlockReader, text: str, offset: int) -> None:
    """Check an expression over the arguments."""
    if not text:
        raise DeclarationError(offset, 1, "expected a Python expression")
    unknown = sorted(expression_names(text, offset) - reader.known_names())
    if unknown:
        match = re.search(rf"\b{re.escape(unknown[0])}\b", text)
        start = match.start() if match else 0
        listed = ", ".join(p.name for p in reader.owner.inputs) or "nothing"
        raise DeclarationError(
            offset + start, len(unknown[0]),
            f"no argument named {unknown[0]}: {reader.owner.name} takes {listed}", "KL802",
        )  # fmt: skip


def _setup(reader: _BlockReader, declaration: Declaration) -> None:
    try:
        tree = ast.parse(declaration.text)
    except (SyntaxError, ValueError) as error:
        column = (getattr(error, "offset", 0) or len(declaration.text) + 1) - 1
        reason = getattr(error, "msg", str(error))
        raise DeclarationError(
            declaration.text_offset + column, 1, f"expected a Python statement: {reason}"
        ) from error
    if not tree.body:
        raise DeclarationError(len(declaration.full), 1, "expected a Python statement")
    stored = {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    reader.setup_names |= stored | (_imported(tree) - free_names(tree))
    reader.setup.append(declaration.text)


def _imported(tree: ast.Module) -> set[str]:
    return {
        (alias.asname or alias.name).split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }


def _call(reader: _BlockReader, declaration: Declaration) -> None:
    if not declaration.text:
        raise DeclarationError(len(declaration.full), 1, "expected a Python expression")
    expression_names(declaration.text, declaration.text_offset)
    reader.call = declaration.text


def _names(reader: _BlockReader, declaration: Declaration) -> list[str]:
    """Argument names separated by blanks or commas."""
    found = list(re.finditer(r"[^\s,]+", declaration.text))
    if not found:
        raise DeclarationError(len(declaration.full), 1, "expected names of arguments")
    known = reader.given | {parameter.name for parameter in reader.owner.inputs}
    for match in found:
        if match.group() not in known:
            listed = ", ".join(sorted(known)) or "nothing"
            raise DeclarationError(
                declaration.text_offset + match.start(), len(match.group()),
                f"no argument named {match.group()}: {reader.owner.name} takes {listed}", "KL802",
            )  # fmt: skip
    return [match.group() for match in found]


def _inplace(reader: _BlockReader, declaration: Declaration) -> None:
    reader.inplace.extend(_names(reader, declaration))


def _grad(reader: _BlockReader, declaration: Declaration) -> None:
    reader.gradients.extend(_names(reader, declaration))


def _bytes(reader: _BlockReader, declaration: Declaration) -> None:
    _expression(reader, declaration.text, declaration.text_offset)
    reader.bytes_expression = declaration.text


def _flops(reader: _BlockReader, declaration: Declaration) -> None:
    _expression(reader, declaration.text, declaration.text_offset)
    reader.flops_expression = declaration.text


def _tolerance(reader: _BlockReader, declaration: Declaration) -> None:
    text, offset = declaration.text, declaration.text_offset
    match = re.match(r"k\s*=\s*", text)
    if match is None:
        raise DeclarationError(offset, max(len(text), 1), f"expected k=NUMBER, got `{text}`")
    reader.tolerance_factor = _number(text[match.end() :], offset + match.end(), zero_too=False)


def _allow(reader: _BlockReader, declaration: Declaration) -> None:
    for match in re.finditer(r"[^\s,]+", declaration.text):
        if match.group() not in ALLOWANCES:
            raise DeclarationError(
                declaration.text_offset + match.start(), len(match.group()),
                f"expected {' or '.join(ALLOWANCES)}, got `{match.group()}`",
            )  # fmt: skip
        reader.allow.append(match.group())
    if not declaration.text:
        raise DeclarationError(len(declaration.full), 1, f"expected {' or '.join(ALLOWANCES)}")


def _deterministic(reader: _BlockReader, declaration: Declaration) -> None:
    if declaration.text:
        raise DeclarationError(
            declaration.text_offset, len(declaration.text),
            f"expected nothing after deterministic, got `{declaration.text}`",
        )  # fmt: skip
    reader.deterministic = True


def _unknown_keyword(declaration: Declaration) -> DeclarationError:
    got = declaration.keyword or declaration.full.split(" ", 1)[0]
    close = difflib.get_close_matches(got, KEYWORDS, 1)
    hint = f"; did you mean {close[0]}" if close else ""
    expected = ", ".join(KEYWORDS)
    return DeclarationError(0, max(len(got), 1), f"expected one of {expected}, got `{got}`{hint}")


_HANDLERS: dict[str, Callable[[_BlockReader, Declaration], None]] = {
    "workload": _workload,
    "reference": _reference,
    "tolerance": _tolerance,
    "allow": _allow,
    "inplace": _inplace,
    "setup": _setup,
    "call": _call,
    "grad": _grad,
    "bytes": _bytes,
    "flops": _flops,
    "deterministic": _deterministic,
}
KEYWORDS = tuple(_HANDLERS)
