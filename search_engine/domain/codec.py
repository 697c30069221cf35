"""JSON for the domain's dataclasses: ``encode(value)`` and ``decode(type, data)``.

A member of a union of dataclasses carries its class name under ``"type"``. Unknown keys are
ignored and missing keys take the field's default, so that records of an older version stay
readable.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import types
import typing
from typing import Any, cast


def encode(value: Any) -> Any:
    """Turn a domain value into JSON-ready data."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: encode(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {"type": type(value).__name__, **fields}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, tuple | list):
        return [encode(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {str(key): encode(item) for key, item in cast("dict[Any, Any]", value).items()}
    return value


def decode(kind: Any, data: Any) -> Any:
    """Build a value of type ``kind`` from JSON data. Raises ValueError if it does not fit."""
    origin = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        return _decode_union(typing.get_args(kind), data)
    if origin is tuple:
        return _decode_tuple(typing.get_args(kind), data)
    if origin is dict:
        item = typing.get_args(kind)[1]
        return {key: decode(item, value) for key, value in data.items()}
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _decode_dataclass(kind, data)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return kind(data)
    return _decode_plain(kind, data)


def _decode_plain(kind: Any, data: Any) -> Any:
    expected = getattr(kind, "__supertype__", kind)  # NewType
    if expected is float and isinstance(data, int) and not isinstance(data, bool):
        return float(data)
    if expected is Any or isinstance(data, expected):
        return data
    raise ValueError(f"expected {kind}, got {data!r}")


def _decode_union(members: tuple[Any, ...], data: Any) -> Any:
    if data is None:
        if type(None) in members:
            return None
        raise ValueError(f"null is none of {members}")
    named: dict[str, Any] = {
        cast("type", m).__name__: m for m in members if dataclasses.is_dataclass(m)
    }
    if isinstance(data, dict):
        record = cast("dict[str, Any]", data)
        if record.get("type") in named:
            return decode(named[record["type"]], record)
        if len(named) == 1 and "type" not in record:
            return decode(next(iter(named.values())), record)
    if isinstance(data, int) and type(data) in members:
        return data  # before a float takes it
    for member in members:
        if member is type(None) or dataclasses.is_dataclass(member):
            continue
        try:
            return decode(member, data)
        except (ValueError, TypeError):
            continue
    raise ValueError(f"{data!r} is none of {members}")


def _decode_tuple(items: tuple[Any, ...], data: Any) -> tuple[Any, ...]:
    if not isinstance(data, list | tuple):
        raise ValueError(f"expected a list, got {data!r}")
    values = cast("list[Any]", data)
    if len(items) == 2 and items[1] is Ellipsis:
        return tuple(decode(items[0], item) for item in values)
    if len(items) != len(values):
        raise ValueError(f"expected {len(items)} items, got {len(values)}")
    return tuple(decode(kind, item) for kind, item in zip(items, values, strict=True))


def _decode_dataclass(kind: type, data: Any) -> Any:
    if not isinstance(data, dict):
        raise ValueError(f"expected an object for {kind.__name__}, got {data!r}")
    values: dict[str, Any] = {}
    for name, field_type in _field_types(kind).items():
        if name in data:
            values[name] = decode(field_type, data[name])
    try:
        return kind(**values)
    except TypeError as error:
        raise ValueError(f"{kind.__name__}: {error}") from error


@functools.cache
def _field_types(kind: type) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}
