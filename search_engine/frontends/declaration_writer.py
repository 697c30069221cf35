"""Writes a first declaration for an entry, and completes one that is being typed."""

from __future__ import annotations

import re

from search_engine.domain.kernel import Entry, Module, Parameter
from search_engine.domain.workload import (
    DTYPES,
    Argument,
    Distribution,
    Role,
    ScalarArgument,
    TensorArgument,
    Values,
    Workload,
)
from search_engine.frontends.declaration_block import ALLOWANCES, KEYWORDS, OPTIONS

_TENSOR_USE = (
    r"\.(?:shape|stride|numel|size|dtype|device|is_contiguous|contiguous|new_empty|view|reshape|"
    r"data_ptr|ndim|dim|T|element_size|flatten|to)\b"
)
_SIZES = ("1024", "2048", "4096", "8192", "16384")
_INTEGER_NAMES = re.compile(r"(?:^|_)(?:ids?|idx|index|indices|labels?|targets?|tokens?)(?:$|_)")
_OFFSET_NAMES = re.compile(r"offsets?|cu_seq|indptr|cumulative|(?:^|_)splits?(?:$|_)")
_VECTOR_NAMES = re.compile(r"^(?:w|b|weight|bias|gamma|beta|scale|shift)s?$")
_FLOAT_NAMES = {"eps": "1e-6", "epsilon": "1e-6", "scale": "1.0", "alpha": "1.0", "beta": "1.0"}


def declare(module: Module, entry: Entry, workload: Workload | None) -> str:
    """Comment lines for directly above ``entry``: one per case, each ended by a newline.

    Cases come from ``workload`` if there is one (recorded, say); else sizes are chosen by what the
    entry does with each parameter. The lines take the entry's indentation and line end.
    """
    data = module.text.encode(errors="surrogatepass")
    start = data.rfind(b"\n", 0, entry.span.start) + 1
    before = data[start : entry.span.start].decode(errors="replace")
    indent = before[: len(before) - len(before.lstrip())]
    newline = "\r\n" if "\r\n" in module.text else "\n"
    if workload is not None and workload.cases:
        lines = _from_workload(workload)
    else:
        body = data[entry.body.start : entry.body.end].decode(errors="replace")
        lines = _inferred(entry, body)
    return "".join(f"{indent}# kernel-lsp: {line}{newline}" for line in lines)


def completions(module: Module, line_text: str, column: int) -> tuple[str, ...]:
    """What may follow at a character column of a declaration line; empty outside one.

    Offers keywords, argument names with ``=``, dtypes with ``[``, sizes and forms of values.
    """
    match = re.match(r"\s*(?:#|//)\s*kernel-lsp:\s*", line_text)
    if match is None or column < match.end():
        return ()
    typed = line_text[match.end() : column]
    keyword, _, rest = typed.partition(" ")
    if not rest and " " not in typed:
        return tuple(word for word in KEYWORDS if word.startswith(keyword))
    if keyword == "allow":
        return ALLOWANCES
    names = _names_below(module, line_text)
    last = re.split(r"[\s,(]+", typed)[-1]
    if keyword != "workload":
        return tuple(name for name in names if name.startswith(last))
    return _in_workload(names, rest)


def _in_workload(names: tuple[str, ...], rest: str) -> tuple[str, ...]:
    item = rest.rsplit(" ", 1)[-1] if "{" not in rest.rsplit("}", 1)[-1] else rest
    if re.search(r"\{[^}]*$", item):
        return (
            "normal", "uniform 0..1", "0..127", "sorted 0..127", "offsets 1024", "distinct 1024",
            "permutation", "zeros", "arange",
        )  # fmt: skip
    if re.search(r"\[[^\]]*$", item):
        named = dict.fromkeys(re.findall(r"([A-Za-z_]\w*):\d", rest))
        return (*named, *_SIZES)
    if "=" in item:
        typed = item.split("=", 1)[1]
        return tuple(f"{dtype}[" for dtype in DTYPES if dtype.startswith(typed))
    given = set(re.findall(r"(?:^|\s)([A-Za-z_]\w*)=", rest))
    offered = (*names, OPTIONS[0])
    return tuple(
        f"{name}=" for name in offered if name.startswith(item) and name not in given
    )  # fmt: skip


def _names_below(module: Module, line_text: str) -> tuple[str, ...]:
    """Parameters of the entry whose declarations contain the line."""
    lines = module.text.splitlines()
    places = [index for index, line in enumerate(lines) if line.rstrip() == line_text.rstrip()]
    for place in places or [0]:
        for entry in module.entries:
            between = lines[place : entry.span.line]
            if entry.span.line >= place and all(
                line.lstrip().startswith(("#", "//")) for line in between
            ):
                return _parameter_names(entry.parameters)
    every = (name for entry in module.entries for name in _parameter_names(entry.parameters))
    return tuple(dict.fromkeys(every))


def _parameter_names(parameters: tuple[Parameter, ...]) -> tuple[str, ...]:
    return tuple(
        parameter.name
        for parameter in parameters
        if not parameter.name.startswith("*") and parameter.name not in ("self", "cls", "ctx")
    )


def _from_workload(workload: Workload) -> list[str]:
    lines: list[str] = []
    for case in workload.cases:
        items = [_argument(argument) for argument in case.arguments]
        weight = [] if case.weight == 1.0 else [f"weight={case.weight:g}"]
        lines.append(" ".join(["workload", *items, *weight]))
    lines.extend(
        f"reference {reference.output + '=' if reference.output else ''}{reference.expression}"
        for reference in workload.references
    )
    return lines


def _argument(argument: Argument) -> str:
    if isinstance(argument, ScalarArgument):
        name = f"{argument.name}_" if argument.name in OPTIONS else argument.name
        return f"{name}={argument.expression}"
    named: set[str] = set()
    sizes: list[str] = []
    for extent in argument.extents:
        first = extent.name is not None and extent.name not in named
        sizes.append(f"{extent.name}:{extent.size}" if first else str(extent.name or extent.size))
        named.add(extent.name or "")
    strides = f"@({','.join(map(str, argument.strides))})" if argument.strides else ""
    role = {Role.INPUT: "", Role.OUTPUT: "!", Role.INOUT: "!!"}[argument.role]
    text = f"{argument.name}={argument.dtype}[{','.join(sizes)}]"
    return f"{text}{_values(argument)}{strides}{role}"


def _values(argument: TensorArgument) -> str:
    values: Values = argument.values
    numbers = [f"{number:.17g}" for number in values.parameters]
    kind = values.distribution
    if kind is Distribution.RECORDED:
        size = argument.extents[0].size if argument.extents else 1
        return "" if argument.dtype[0] in "f" or argument.dtype == "bf16" else f"{{0..{size - 1}}}"
    if kind is Distribution.NORMAL:
        return "" if values.parameters in ((), (1.0, 0.0)) else f"{{normal*{'+'.join(numbers)}}}"
    if kind in (Distribution.INTEGERS, Distribution.UNIFORM, Distribution.SORTED):
        prefix = "" if kind is Distribution.INTEGERS else f"{kind.value} "
        return f"{{{prefix}{'..'.join(numbers)}}}"
    if kind is Distribution.BERNOULLI:
        return f"{{{numbers[0]}}}" if numbers else ""
    return "{" + " ".join([kind.value, *numbers]) + "}"


def _inferred(entry: Entry, body: str) -> list[str]:
    ranks = (_rank(parameter.name, body) for parameter in entry.parameters)
    # Tensors of which nothing is known mostly have the form of one of which something is known.
    usual_rank = next((rank for rank in ranks if rank), 1 if ".numel()" in body else 2)
    items = [
        _inferred_argument(parameter, body, usual_rank)
        for parameter in entry.parameters
        if not parameter.name.startswith("*") and parameter.name not in ("self", "cls", "ctx")
        and (parameter.default is None or _is_tensor(parameter, body))
    ]  # fmt: skip
    return [" ".join(["workload", *items])] if items else []


def _inferred_argument(parameter: Parameter, body: str, usual_rank: int) -> str:
    name = parameter.name
    if not _is_tensor(parameter, body):
        written = f"{name}_" if name in OPTIONS else name
        return f"{written}={_inferred_scalar(parameter)}"
    if _OFFSET_NAMES.search(name):
        return f"{name}=i32[65]{{offsets 4096}}"
    if _INTEGER_NAMES.search(name):
        return f"{name}=i64[4096]{{0..1023}}"
    rank = _rank(name, body)
    if rank is None:
        rank = 1 if _VECTOR_NAMES.match(name) or f"{name}.numel()" in body else usual_rank
    if rank == 1 and not _VECTOR_NAMES.match(name):
        return f"{name}=f32[16777216]"
    sizes = {0: "", 1: "4096", 2: "4096,4096", 3: "8,1024,1024", 4: "4,16,1024,64"}
    return f"{name}=f32[{sizes.get(rank, ','.join(['2'] * (rank - 3) + ['64', '64', '64']))}]"


def _inferred_scalar(parameter: Parameter) -> str:
    annotation = parameter.annotation or ""
    if "bool" in annotation:
        return "False"
    if "dtype" in annotation or parameter.name == "dtype":
        return "torch.float32"
    if "str" in annotation:
        return "''"
    if "float" in annotation:
        return _FLOAT_NAMES.get(parameter.name, "1.0")
    return _FLOAT_NAMES.get(parameter.name, "128")


def _is_tensor(parameter: Parameter, body: str) -> bool:
    annotation = parameter.annotation or ""
    if "Tensor" in annotation:
        return True
    if annotation and re.search(r"\b(?:int|float|bool|str|dtype|Callable)\b", annotation):
        return False
    return re.search(rf"\b{re.escape(parameter.name)}{_TENSOR_USE}", body) is not None


def _rank(name: str, body: str) -> int | None:
    """Number of dimensions that the body unpacks or indexes."""
    escaped = re.escape(name)
    unpacked = re.search(
        rf"^[ \t]*\(?([\w, \t]+?)\)?[ \t]*=[ \t]*{escaped}\.shape[ \t]*$", body, re.M
    )
    if unpacked is None:
        unpacked = re.search(rf"^[ \t]*([\w, \t]+?)=[ \t]*{escaped}\.size\(\)[ \t]*$", body, re.M)
    if unpacked is not None and "," in unpacked.group(1):
        return len([part for part in unpacked.group(1).split(",") if part.strip()])
    used = re.findall(rf"\b{escaped}\.(?:shape\[|stride\(|size\()(\d+)", body)
    return max(map(int, used)) + 1 if used else None
