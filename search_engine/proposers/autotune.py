"""Lists of ``triton.Config`` in decorators: read them, and pin one configuration."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from search_engine.proposers.sites import integer, last_name, module_bindings

OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")
_LIMIT = 256
"""Comprehensions longer than this are read in part; the rest would only be compared against."""


@dataclass(frozen=True, slots=True)
class Settings:
    """One ``Config``: meta-parameters and options by name, and other arguments as text."""

    parameters: dict[str, str]
    options: dict[str, str]
    extras: tuple[str, ...]

    def updated(self, values: Mapping[str, str]) -> Settings:
        """The same with some values replaced; names that are no option are meta-parameters."""
        parameters = self.parameters | {k: v for k, v in values.items() if k not in OPTIONS}
        options = self.options | {k: v for k, v in values.items() if k in OPTIONS}
        return Settings(parameters, options, self.extras)

    def values(self) -> dict[str, str]:
        """Every meta-parameter and option."""
        return self.parameters | self.options


@dataclass(frozen=True, slots=True)
class ConfigList:
    """The ``configs`` argument of a kernel's autotune decorator."""

    expression: ast.expr
    constructor: str
    """How ``Config`` is spelled in this file."""
    settings: tuple[Settings, ...]

    def pinned(self, values: Mapping[str, str]) -> str:
        """Text of a list with one configuration: the first, with some values replaced."""
        settings = self.settings[0].updated(values)
        body = ", ".join(f'"{name}": {value}' for name, value in settings.parameters.items())
        options = [f"{name}={value}" for name, value in settings.options.items()]
        parts = ", ".join(["{" + body + "}", *options, *settings.extras])
        return f"[{self.constructor}({parts})]"


def config_list(tree: ast.Module, kernel: ast.FunctionDef) -> ConfigList | None:
    """The list that tunes a kernel; None if there is none that can be read."""
    for decorator in kernel.decorator_list:
        if not isinstance(decorator, ast.Call):
            continue
        expression = _configs_argument(decorator)
        if expression is None:
            continue
        read = tuple(_read(tree, expression))
        if not read:
            return None
        constructor, _ = read[0]
        return ConfigList(expression, constructor, tuple(settings for _, settings in read))
    return None


def _configs_argument(decorator: ast.Call) -> ast.expr | None:
    for keyword in decorator.keywords:
        if keyword.arg == "configs":
            return keyword.value
    if (last_name(decorator.func) or "").endswith("autotune") and decorator.args:
        return decorator.args[0]
    return None


def _read(tree: ast.Module, expression: ast.expr) -> Iterator[tuple[str, Settings]]:
    if isinstance(expression, ast.Name):
        values = module_bindings(tree, expression.id)
        if len(values) == 1 and values[0] is not None:
            yield from _read(tree, values[0])
    elif isinstance(expression, (ast.List, ast.Tuple)):
        for item in expression.elts:
            if isinstance(item, ast.Call) and (settings := _settings(item, {})) is not None:
                yield ast.unparse(item.func), settings
    elif isinstance(expression, ast.BinOp) and isinstance(expression.op, ast.Add):
        yield from _read(tree, expression.left)
        yield from _read(tree, expression.right)
    elif isinstance(expression, ast.ListComp) and isinstance(expression.elt, ast.Call):
        for known in _environments(tree, expression.generators):
            settings = _settings(expression.elt, known)
            if settings is not None:
                yield ast.unparse(expression.elt.func), settings
    elif isinstance(expression, ast.Call) and not expression.args and not expression.keywords:
        yield from _read_function(tree, last_name(expression.func))


def _read_function(tree: ast.Module, name: str | None) -> Iterator[tuple[str, Settings]]:
    """The list returned by a function without arguments, as in ``configs=get_configs()``."""
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef) or node.name != name or node.args.args:
            continue
        returns = [item.value for item in ast.walk(node) if isinstance(item, ast.Return)]
        if len(returns) == 1 and isinstance(returns[0], (ast.List, ast.ListComp)):
            yield from _read(tree, returns[0])


def _environments(
    tree: ast.Module, generators: list[ast.comprehension]
) -> Iterator[dict[str, ast.expr]]:
    """Assignments of the loop variables; filters are ignored, which only adds members."""
    environments: list[dict[str, ast.expr]] = [{}]
    for generator in generators:
        source = generator.iter
        if isinstance(source, ast.Name):
            values = module_bindings(tree, source.id)
            source = values[0] if len(values) == 1 and values[0] is not None else source
        if not isinstance(source, (ast.List, ast.Tuple)):
            return
        environments = [
            {**known, **_unpack(generator.target, item)}
            for known in environments
            for item in source.elts
        ][:_LIMIT]
    yield from environments


def _unpack(target: ast.expr, value: ast.expr) -> dict[str, ast.expr]:
    if isinstance(target, ast.Name):
        return {target.id: value}
    if isinstance(target, ast.Tuple) and isinstance(value, (ast.Tuple, ast.List)):
        pairs = zip(target.elts, value.elts, strict=False)
        return {name: item for left, right in pairs for name, item in _unpack(left, right).items()}
    return {}


def _settings(call: ast.Call, known: dict[str, ast.expr]) -> Settings | None:
    if last_name(call.func) is None or not (last_name(call.func) or "").endswith("Config"):
        return None
    keywords = {item.arg: item.value for item in call.keywords if item.arg is not None}
    table = call.args[0] if call.args else keywords.pop("kwargs", None)
    entries = _table(table)
    if entries is None or len(call.args) > 1:
        return None
    options = {k: _text(v, known) for k, v in keywords.items() if k in OPTIONS}
    extras = tuple(f"{k}={_text(v, known)}" for k, v in keywords.items() if k not in OPTIONS)
    parameters = {name: _text(value, known) for name, value in entries.items()}
    return Settings(parameters, options, extras)


def _table(node: ast.expr | None) -> dict[str, ast.expr] | None:
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        entries = {
            key.value: value
            for key, value in pairs
            if isinstance(key, ast.Constant) and isinstance(key.value, str)
        }
        return entries if len(entries) == len(node.values) else None
    if isinstance(node, ast.Call) and last_name(node.func) == "dict" and not node.args:
        return {item.arg: item.value for item in node.keywords if item.arg is not None}
    return None


def _text(node: ast.expr, known: dict[str, ast.expr]) -> str:
    if isinstance(node, ast.Name) and node.id in known:
        return _text(known[node.id], {})
    value = integer(node)
    return ast.unparse(node) if value is None else str(value)
