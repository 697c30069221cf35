"""Types of parameters, from how the kernel uses them and what the launch passes."""

from __future__ import annotations

from dataclasses import dataclass

from search_engine.domain.kernel import Parameter
from search_engine.frontends.assumed_calls import DATA_TYPES
from search_engine.frontends.assumed_roles import (
    holds_offsets,
    holds_statistics,
    holds_wide_indices,
    is_float_scalar,
    is_stride,
)
from search_engine.frontends.assumed_site import Site
from search_engine.frontends.assumed_uses import (
    Access,
    Evidence,
    KernelUses,
    looks_like_pointer,
    pointers_of,
)

_WHOLE = frozenset({Evidence.INDEX, Evidence.BITS, Evidence.INTEGER})
_REAL = frozenset({Evidence.FLOAT, Evidence.WIDENED, Evidence.DOT})
_SHORT_NAMES = {"i1": "i1", "bool": "i1", "int": "i32", "float": "fp32"}


@dataclass(frozen=True, slots=True)
class Pointers:
    """Element types of the parameters that are pointers, in the order of the signature."""

    elements: dict[str, str]
    rows: frozenset[str]
    """Pointers whose last axis has no stride in the kernel: it is taken to be contiguous."""


def pointer_types(parameters: tuple[Parameter, ...], uses: KernelUses, site: Site) -> Pointers:
    """Which parameters are pointers, and to what."""
    order = tuple(parameter.name for parameter in parameters if not parameter.constexpr)
    accesses: dict[str, list[Access]] = {}
    through = pointers_of(uses, order)
    for index, behind in through.items():
        for name in behind:
            accesses.setdefault(name, []).append(uses.accesses[index])
    names = [name for name in order if name in accesses or _is_pointer(name, uses, site)]
    half = uses.has_dot or any(
        Evidence.WIDENED in access.evidence for access in uses.accesses
    ) or any(Evidence.POINTER in uses.parameters.get(name, ()) for name in names)  # fmt: skip
    annotations = {parameter.name: parameter.annotation for parameter in parameters}
    elements: dict[str, str] = {}
    for name in names:
        written = _annotated(annotations[name], "*")
        elements[name] = written or element_type(name, accesses.get(name, []), half)
    for name in names:
        source = _copied_from(accesses.get(name, []), through)
        if source in elements and _annotated(annotations[name], "*") is None:
            elements[name] = elements[source]
    rows = (name for name in names if any(access.unit for access in accesses.get(name, ())))
    return Pointers(elements, frozenset(rows))


def element_type(name: str, accesses: list[Access], half: bool) -> str:
    """Element type of a pointer by what is loaded and stored through it."""
    evidence = {item for access in accesses for item in access.evidence}
    index = "i64" if holds_wide_indices(name) else "i32"
    if Evidence.POINTEE in evidence:
        return "i64"
    if Evidence.INDEX in evidence and not evidence & {Evidence.WIDENED, Evidence.DOT}:
        return index
    if not evidence & _REAL:
        if evidence & {Evidence.INDEX, Evidence.INTEGER} or holds_offsets(name):
            return index
        if Evidence.BITS in evidence:
            return "i32"
        if Evidence.CONDITION in evidence and not any(access.stores for access in accesses):
            return "i1"
    return _stored(name, accesses, evidence, half)


def scalar_type(parameter: Parameter, uses: KernelUses, site: Site) -> str:
    """Triton's type of a parameter that is no pointer."""
    name = parameter.name
    written = _annotated(parameter.annotation, "")
    if written is not None:
        return written
    kind, evidence = site.kind(name), uses.parameters.get(name, set())
    if kind == "bool":
        return "i1"
    if Evidence.POINTEE in evidence:
        return "i64"
    if kind == "float":
        return "fp32"
    if Evidence.INTEGER in evidence or kind == "int" or is_stride(name):
        return "i32"
    default = parameter.default or ""
    real = Evidence.FLOAT in evidence or is_float_scalar(name) or "." in default
    return "fp32" if real else "i32"


def _is_pointer(name: str, uses: KernelUses, site: Site) -> bool:
    evidence = uses.parameters.get(name, set())
    if Evidence.POINTER in evidence:
        return True
    if evidence & {Evidence.INTEGER, Evidence.FLOAT}:
        return False
    return looks_like_pointer(name) or site.kind(name) == "tensor" or name in uses.optional


def _stored(name: str, accesses: list[Access], evidence: set[Evidence], half: bool) -> str:
    stores = [access for access in accesses if access.stores]
    types = {access.stored_type for access in stores if access.stored_type is not None}
    kinds = {access.stored_kind for access in stores}
    if not evidence & _REAL:
        exact = types - {"fp32"}
        if len(exact) == 1:
            return exact.pop()
        if kinds == {"int"}:
            return "i64" if holds_wide_indices(name) and not _atomic(stores) else "i32"
        if kinds == {"bool"}:
            return "i1"
    if _atomic(stores) or (holds_statistics(name) and Evidence.DOT not in evidence):
        return "fp32"
    if types == {"fp32"} and not evidence:
        return "fp32"
    return "bf16" if half else "fp32"


def _atomic(stores: list[Access]) -> bool:
    return any(access.atomic for access in stores)


def _copied_from(accesses: list[Access], through: dict[int, tuple[str, ...]]) -> str | None:
    """The pointer whose data is stored unchanged, if all that is stored comes from it."""
    sources: set[str] = set()
    for access in accesses:
        if access.stores:
            sources.update(name for load in access.copied for name in through.get(load, ()))
            if not access.copied:
                return None
    return sources.pop() if len(sources) == 1 else None


def _annotated(annotation: str | None, star: str) -> str | None:
    """The type that an annotation writes: ``tl.int64``, ``"*fp32"``, ``tl.pointer_type(...)``."""
    if annotation is None:
        return None
    text = annotation.strip("\"' ")
    if star and text.startswith("*"):
        return text.lstrip("*").removeprefix("k")
    if star and "pointer_type(" in text:
        text = text.partition("pointer_type(")[2].rstrip(") ")
        return DATA_TYPES.get(text.rpartition(".")[2])
    if star:
        return None
    last = text.rpartition(".")[2]
    known = {*DATA_TYPES.values()}
    return DATA_TYPES.get(last) or (last if last in known else _SHORT_NAMES.get(last))
