"""Loops and memory, matrix, reduction, scan and random operations inside a Triton function."""

from __future__ import annotations

import re
from itertools import chain

import tree_sitter

from search_engine.domain.kernel import Loop, Operation, OperationKind
from search_engine.frontends.triton_syntax import Source, span

_KINDS: dict[OperationKind, tuple[str, ...]] = {
    OperationKind.LOAD: (
        "load", "load_tensor_descriptor", "experimental_descriptor_load",
    ),
    OperationKind.STORE: (
        "store", "store_tensor_descriptor", "experimental_descriptor_store",
    ),
    OperationKind.ATOMIC: (
        "atomic_add", "atomic_max", "atomic_min", "atomic_and", "atomic_or", "atomic_xor",
        "atomic_cas", "atomic_xchg",
    ),
    OperationKind.DOT: ("dot", "dot_scaled"),
    OperationKind.REDUCTION: (
        "sum", "max", "min", "argmax", "argmin", "xor_sum", "reduce", "reduce_or",
    ),
    OperationKind.SCAN: ("cumsum", "cumprod", "associative_scan"),
    OperationKind.RANDOM: (
        "rand", "randn", "randint", "randint4x", "rand4x", "randn4x", "philox", "philox_impl",
    ),
}  # fmt: skip
_KIND_OF = {name: kind for kind, names in _KINDS.items() for name in names}
_CALL = re.compile(
    rb"\b(" + b"|".join(sorted((n.encode() for n in _KIND_OF), reverse=True)) + rb")\s*\("
)
_LOOP = re.compile(rb"\b(?:for|while)\b")
_MASK_POSITION = {OperationKind.LOAD: 1, OperationKind.STORE: 2, OperationKind.ATOMIC: 2}
"""Index of the positional ``mask`` argument."""
_OTHER_MODULES = frozenset({"libdevice", "math", "np", "numpy", "torch"})
"""Modules whose functions share a name with an operation."""


def loops_in(source: Source, node: tree_sitter.Node) -> tuple[Loop, ...]:
    """All ``for`` and ``while`` statements inside ``node``, outermost first."""
    matches = _LOOP.finditer(source.data, node.start_byte, node.end_byte)
    found = (_loop(source, match.start()) for match in matches)
    return tuple(loop for loop in found if loop is not None)


def operations_in(
    source: Source, node: tree_sitter.Node, loops: tuple[Loop, ...], language: frozenset[str]
) -> tuple[Operation, ...]:
    """Operations inside ``node`` in file order.

    ``language`` holds the names under which ``triton.language`` is known in the file, and the
    names imported from it.
    """
    found: list[Operation] = []
    for match in _CALL.finditer(source.data, node.start_byte, node.end_byte):
        call = _call_of(source, match.start())
        if call is None or not _is_operation(source, call, language):
            continue
        where = span(call)
        name = match.group(1).decode()
        kind = _KIND_OF[name]
        found.append(
            Operation(
                kind=kind,
                name=name,
                text=source.text(call),
                span=where,
                masked=_masked(source, call, kind, language),
                in_loop=any(loop.body.contains(where) for loop in loops),
            )
        )
    return tuple(found)


def called_names(source: Source, node: tree_sitter.Node) -> tuple[str, ...]:
    """Last names of everything that looks called inside ``node``, each once, in file order."""
    names = _ANY_CALL.findall(source.data, node.start_byte, node.end_byte)
    return tuple(dict.fromkeys(name.decode() for name in names))


_ANY_CALL = re.compile(rb"\b([A-Za-z_]\w*)\s*\(")


def _loop(source: Source, offset: int) -> Loop | None:
    leaf = source.leaf(offset)
    node = leaf.parent if leaf is not None else None
    if node is None or node.type not in ("for_statement", "while_statement"):
        return None
    field = "right" if node.type == "for_statement" else "condition"
    left, header = node.child_by_field_name("left"), node.child_by_field_name(field)
    body = node.child_by_field_name("body")
    if header is None or body is None:
        return None
    target = source.text(left) if left is not None else None
    return Loop(target, source.text(header), span(node), span(body))


def _call_of(source: Source, offset: int) -> tree_sitter.Node | None:
    """The call whose function ends in the identifier at ``offset``."""
    leaf = source.leaf(offset)
    if leaf is None or leaf.type != "identifier":
        return None
    function, parent = leaf, leaf.parent
    if parent is not None and parent.type == "attribute":
        function, parent = parent, parent.parent
    if (
        parent is None
        or parent.type != "call"
        or parent.child_by_field_name("function") != function
    ):
        return None
    return parent


def _is_operation(source: Source, call: tree_sitter.Node, language: frozenset[str]) -> bool:
    function = call.child_by_field_name("function")
    if function is None:
        return False
    text = source.text(function)
    if function.type == "identifier":
        return text in language
    return text.split(".", 1)[0] not in _OTHER_MODULES


def _masked(
    source: Source, call: tree_sitter.Node, kind: OperationKind, language: frozenset[str]
) -> bool:
    position = _MASK_POSITION.get(kind)
    listed = call.child_by_field_name("arguments")
    if position is None or listed is None:
        return False
    function = call.child_by_field_name("function")
    base = source.text(function).rsplit(".", 1)[0] if function is not None else ""
    if function is not None and function.type == "attribute" and base not in language:
        return True  # a tensor descriptor clips to its shape
    arguments = [child for child in listed.named_children if child.type != "comment"]
    positional = [child for child in arguments if child.type != "keyword_argument"]
    names = {"mask", "boundary_check"}
    keywords = chain.from_iterable(
        _keyword(source, child) for child in arguments if child.type == "keyword_argument"
    )
    if any(name in names and value not in ("None", "()") for name, value in keywords):
        return True
    return len(positional) > position and source.text(positional[position]) != "None"


def _keyword(source: Source, node: tree_sitter.Node) -> tuple[tuple[str, str], ...]:
    name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
    if name is None or value is None:
        return ()
    return ((source.text(name), source.text(value)),)
