"""Settings, parsed once at the edge into a frozen value; the JSON schema is made from the same.

Precedence: defaults < user file < ``pyproject.toml [tool.kernel-lsp]`` < editor. A project's file
may not name executables, environments, archives or trust: a cloned repository must not be able to
choose what runs on the machine.
"""

from __future__ import annotations

import dataclasses
import json
import math
import tomllib
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

from search_engine.domain.run import BUDGETS, Effort

PROJECT_KEYS = frozenset(
    {
        "targets", "target", "device", "compile", "details", "inlayHints", "effort", "budget",
        "ignore",
    }
)  # fmt: skip
"""What ``pyproject.toml`` may set."""

SHOWN_LENGTH = 60
"""Of a value that is refused, so much is repeated."""


def _describe(text: str) -> dict[str, str]:
    return {"description": text}


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """The user's interpreter, the one that has torch and Triton."""

    python: str | None = field(
        default=None, metadata=_describe("Interpreter with torch and Triton; empty: found.")
    )
    cwd: str | None = field(default=None, metadata=_describe("Working directory of workers."))
    env: dict[str, str] = field(
        default_factory=dict[str, str], metadata=_describe("Environment added for workers.")
    )


@dataclass(frozen=True, slots=True)
class BudgetSettings:
    """Limits that replace those of the effort preset."""

    wall_seconds: float | None = field(default=None, metadata=_describe("Wall-clock seconds."))
    device_seconds: float | None = field(default=None, metadata=_describe("Seconds on the GPU."))
    evaluations: int | None = field(default=None, metadata=_describe("Candidates evaluated."))


@dataclass(frozen=True, slots=True)
class ArchiveSettings:
    """Where results are kept."""

    path: str | None = field(
        default=None, metadata=_describe("SQLite file; empty: one per user in the state folder.")
    )


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything a user can choose."""

    worker: WorkerSettings = field(
        default_factory=WorkerSettings, metadata=_describe("The user's interpreter.")
    )
    targets: tuple[str, ...] = field(
        default=(),
        metadata=_describe("Architectures that findings are for; empty: the GPU's here or sm_90."),
    )
    target: str | None = field(
        default=None,
        metadata=_describe("Architecture that runs are for; empty: the GPU's, else of targets."),
    )
    device: str = field(
        default="auto", metadata=_describe("GPU to measure on: auto, none, an index or a UUID.")
    )
    compile: Literal["off", "onSave", "background"] = field(
        default="background",
        metadata=_describe("When open kernels are compiled for findings; details ask for it too."),
    )
    details: Literal["off", "summary", "perLine"] = field(
        default="summary", metadata=_describe("Diagnostics: none, one a kernel, or per line.")
    )
    inlay_hints: bool = field(
        default=False, metadata=_describe("Registers and occupancy behind a kernel's name.")
    )
    effort: Literal["quick", "normal", "thorough"] = field(
        default="normal", metadata=_describe("Budget preset: 1, 2 or 10 minutes.")
    )
    budget: BudgetSettings = field(
        default_factory=BudgetSettings, metadata=_describe("Limits instead of the preset's.")
    )
    ignore: tuple[str, ...] = field(
        default=(), metadata=_describe("Codes or names of diagnostics that are not shown.")
    )
    help_url: str | None = field(
        default=None, metadata=_describe("Page that explains findings; empty: the installed one.")
    )
    archive: ArchiveSettings = field(
        default_factory=ArchiveSettings, metadata=_describe("Where results are kept.")
    )
    trust: Literal["ask", "always", "never"] = field(
        default="ask", metadata=_describe("Whether code of this workspace may be run.")
    )

    @property
    def budget_seconds(self) -> float:
        """Wall-clock seconds of a run."""
        return self.budget.wall_seconds or BUDGETS[Effort(self.effort)].wall_seconds

    @property
    def finding_targets(self) -> tuple[str, ...]:
        """Architectures that findings are for; empty for the default one."""
        return self.targets or ((self.target,) if self.target else ())

    def run_target(self, device: bool) -> str | None:
        """Architecture of a run. Where there is a GPU, only ``target`` overrules it."""
        if self.target is not None or device:
            return self.target
        return self.targets[0] if self.targets else None

    @property
    def budget_request(self) -> dict[str, float]:
        """The budget as a search host reads it; always with ``wallSeconds``."""
        limits = {
            "wallSeconds": self.budget_seconds,
            "deviceSeconds": self.budget.device_seconds,
            "evaluations": self.budget.evaluations,
        }
        return {name: value for name, value in limits.items() if value is not None}


def parse(data: Mapping[str, Any]) -> tuple[Settings, tuple[str, ...]]:
    """Settings and one sentence for each value that was not understood and so left at default."""
    problems: list[str] = []
    settings = _build(Settings, data, "kernelLsp", problems)
    return cast("Settings", settings), tuple(problems)


def override(settings: Settings, data: Mapping[str, Any]) -> Settings:
    """``settings`` with the effort and budget of one command.

    Raises ValueError with a sentence for each value that does not fit.
    """
    wanted, problems = parse(data)
    if problems:
        raise ValueError(". ".join(problems))
    if "budget" not in data and "effort" in data:
        return dataclasses.replace(settings, effort=wanted.effort, budget=BudgetSettings())
    return dataclasses.replace(
        settings,
        effort=wanted.effort if "effort" in data else settings.effort,
        budget=wanted.budget if "budget" in data else settings.budget,
    )


def merge(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Later layers win; objects are merged key by key. Null means not set."""
    merged: dict[str, Any] = {}
    for layer in layers:
        for key, value in layer.items():
            if isinstance(value, Mapping):
                below = merged.get(key)
                base = cast("dict[str, Any]", below) if isinstance(below, dict) else {}
                merged[key] = merge(base, cast("Mapping[str, Any]", value))
            elif value is not None:
                merged[key] = value
    return merged


def project_layer(root: Path) -> tuple[dict[str, Any], tuple[str, ...]]:
    """``[tool.kernel-lsp]`` of the project, and a sentence for each key it may not set."""
    tool: Any = _read_toml(root / "pyproject.toml").get("tool", {})
    table: Any = cast("dict[str, Any]", tool).get("kernel-lsp", {})
    if not isinstance(table, dict):
        return {}, ("pyproject.toml: [tool.kernel-lsp] must be a table",)
    data = _camel_keys(cast("dict[str, Any]", table))
    refused = tuple(
        f"pyproject.toml: `{key}` cannot be set by a project; set it in the editor"
        for key in data
        if key not in PROJECT_KEYS
    )
    return {key: value for key, value in data.items() if key in PROJECT_KEYS}, refused


def user_layer(path: Path) -> dict[str, Any]:
    """The user's own file, which may set everything."""
    return _camel_keys(_read_toml(path))


def schema() -> dict[str, Any]:
    """JSON schema of the ``kernelLsp`` object."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "kernel-lsp settings",
        **_object_schema(Settings),
    }


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def _camel_keys(table: dict[str, Any]) -> dict[str, Any]:
    camel: dict[str, Any] = {}
    for key, value in table.items():
        nested = _camel_keys(cast("dict[str, Any]", value)) if isinstance(value, dict) else value
        camel[_camel(key.replace("-", "_"))] = nested
    return camel


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _build(kind: type, data: Mapping[str, Any], path: str, problems: list[str]) -> Any:
    hints = typing.get_type_hints(kind)
    values: dict[str, Any] = {}
    known = {_camel(f.name): f.name for f in dataclasses.fields(kind)}
    problems.extend(
        f"{path}.{key} is not a setting; known are {', '.join(known)}"
        for key in data
        if key not in known
    )
    for key, name in known.items():
        if data.get(key) is None:
            continue
        try:
            values[name] = _value(hints[name], data[key], f"{path}.{key}", problems)
        except ValueError as error:
            problems.append(f"{path}.{key} is {_shown(data[key])}; it must be {error}")
    return kind(**values)


def _value(kind: Any, data: Any, path: str, problems: list[str]) -> Any:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        kind = next(member for member in arguments if member is not type(None))
        return _value(kind, data, path, problems) if data != "" else None
    if origin is Literal:
        return _choice(data, arguments)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _build(kind, _mapping(data), path, problems)
    if origin is tuple:
        return tuple(_scalar(str, item) for item in _sequence(data))
    if origin is dict:
        return {str(key): _scalar(str, item) for key, item in _mapping(data).items()}
    return _scalar(cast("type", kind), data)


def _shown(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, default=str)[:SHOWN_LENGTH]


def _choice(data: Any, choices: tuple[Any, ...]) -> Any:
    if isinstance(data, bool) and "always" in choices:
        return "always" if data else "never"
    if data not in choices:
        raise ValueError(f"{', '.join(choices[:-1])} or {choices[-1]}")
    return data


def _scalar(kind: type, data: Any) -> Any:
    if kind is bool:
        if not isinstance(data, bool):
            raise ValueError("true or false")
        return data
    number = isinstance(data, (int, float)) and not isinstance(data, bool)
    if kind is str and isinstance(data, str):
        return data
    if kind is str or not number:
        raise ValueError("text" if kind is str else "a number above zero")
    if not 0 < data < math.inf:
        raise ValueError("above zero" if data < math.inf else "finite")
    return max(1, int(data)) if kind is int else float(data)


def _mapping(data: Any) -> Mapping[str, Any]:
    if not isinstance(data, Mapping):
        raise ValueError("an object")
    return cast("Mapping[str, Any]", data)


def _sequence(data: Any) -> list[Any]:
    if not isinstance(data, (list, tuple)):
        raise ValueError("a list of texts")
    return list(cast("list[Any]", data))


def _object_schema(kind: type) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            _camel(f.name): {**_schema_of(hints[f.name]), **f.metadata, **_default(f)}
            for f in dataclasses.fields(kind)
        },
    }


def _schema_of(kind: Any) -> dict[str, Any]:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        inner = _schema_of(next(m for m in arguments if m is not type(None)))
        return {**inner, "type": [inner["type"], "null"]}
    if origin is Literal:
        return {"type": "string", "enum": list(arguments)}
    if origin is tuple:
        return {"type": "array", "items": {"type": "string"}}
    if origin is dict:
        return {"type": "object", "additionalProperties": {"type": "string"}}
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _object_schema(kind)
    if kind in (str, bool):
        return {"type": "string" if kind is str else "boolean"}
    return {"type": "integer" if kind is int else "number", "exclusiveMinimum": 0}


def _default(item: dataclasses.Field[Any]) -> dict[str, Any]:
    if item.default is dataclasses.MISSING:
        return {}
    default = item.default
    return {
        "default": list(cast("tuple[Any, ...]", default)) if isinstance(default, tuple) else default
    }
