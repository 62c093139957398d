"""Options of a command from a TOML or YAML file; what the command line gives comes first."""

from __future__ import annotations

import difflib
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import typer

from smartmem_mlir.errors import OptionError

_PATHS = frozenset({"model", "output"})
"""Options that are paths; in a file they are relative to the file."""
_DESCRIPTIONS = frozenset({"target", "pipeline"})
"""Options that are a name, or the path of a description, which ends in .yaml."""
_NOT_IN_FILES = frozenset({"config", "help", "debug"})
MAX_BYTES = 1 << 20


def use_config(context: typer.Context, value: Path | None) -> Path | None:
    """Callback of an eager option `--config`: what the file says becomes the default of each option.

    Raises:
        OptionError: The file cannot be read, or has an option that the command has not.
    """
    if value is not None:
        known = {name for parameter in context.command.params if (name := parameter.name) not in (None, *_NOT_IN_FILES)}
        context.default_map = {**(context.default_map or {}), **load_config(value, known)}
    return value


def load_config(path: Path, known: set[str]) -> dict[str, Any]:
    """The options in a file.

    Args:
        path: A `.toml`, `.yaml` or `.yml` file: one table, whose keys are long options without dashes in front. `dim`
            is a table of sizes.
        known: Names of the command's parameters, with underscores.

    Raises:
        OptionError: It is no such file.
    """
    options = {}
    for key, value in _read(path).items():
        name = str(key).replace("-", "_")
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean '{near[0]}'?" if near else f"one of {', '.join(sorted(known))}"
            raise OptionError(f"no such option '{key}'", hint=hint, file=path)
        if value is not None:
            options[name] = _converted(path, name, value)
    return options


def _converted(path: Path, name: str, value: Any) -> Any:
    """A value as the command line would give it."""
    if name == "dim":
        if not isinstance(value, dict):
            raise OptionError("dim: expected a table of sizes, such as {batch = 1}", file=path)
        return [f"{dimension}={size}" for dimension, size in value.items()]
    if isinstance(value, (dict, list)):
        raise OptionError(f"{name}: expected one value, not a {type(value).__name__}", file=path)
    if name in _PATHS or (name in _DESCRIPTIONS and Path(str(value)).suffix in (".yaml", ".yml")):
        return str(path.parent / str(value))
    return value if isinstance(value, bool) else str(value)


def _read(path: Path) -> dict[Any, Any]:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise OptionError("too large for a file of options", file=path)
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(
            f"cannot read: {error}", hint="name a .toml or .yaml file with --config", file=path
        ) from error
    content = _parse(path, text)
    if not isinstance(content, dict):
        raise OptionError("expected a table of options", file=path)
    return content


def _parse(path: Path, text: str) -> Any:
    if path.suffix == ".toml":
        # In the standard library since Python 3.11; before that a package of the same interface.
        toml = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
        try:
            return toml.loads(text)
        except toml.TOMLDecodeError as error:
            raise OptionError(f"not TOML: {error}", file=path) from error
    if path.suffix in (".yaml", ".yml"):
        import yaml

        try:
            return yaml.safe_load(text) or {}
        except (yaml.YAMLError, RecursionError, ValueError) as error:
            raise OptionError(f"not YAML: {' '.join(str(error).split())}", file=path) from error
    raise OptionError(f"'{path.suffix}' is not the end of a file of options", hint="use .toml or .yaml", file=path)
