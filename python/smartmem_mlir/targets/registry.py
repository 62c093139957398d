"""Targets by name or by file."""

from __future__ import annotations

import difflib
from pathlib import Path

from smartmem_mlir.errors import OptionError
from smartmem_mlir.targets.description import TargetDescription
from smartmem_mlir.targets.documents import parse_document, read_yaml
from smartmem_mlir.targets.resources import pipelines_dir


def target_names() -> list[str]:
    """Names of the targets that come with the project, sorted."""
    return sorted(path.stem for path in (pipelines_dir() / "targets").glob("*.yaml"))


def load_target(name_or_path: str) -> TargetDescription:
    """The description of a target.

    Args:
        name_or_path: A name from :func:`target_names`, or the path of a YAML file (recognised by its suffix or by a
            path separator).

    Raises:
        OptionError: The target is unknown (near matches are named), or its description is invalid.
    """
    if name_or_path.endswith((".yaml", ".yml")) or "/" in name_or_path:
        path = Path(name_or_path)
        if not path.is_file():
            raise OptionError("no such target description", hint=_known_targets(), file=path)
    else:
        path = pipelines_dir() / "targets" / f"{name_or_path}.yaml"
        if name_or_path not in target_names():
            near = difflib.get_close_matches(name_or_path, target_names(), n=3, cutoff=0.5)
            hint = f"did you mean {' or '.join(near)}? {_known_targets()}" if near else _known_targets()
            raise OptionError(f"unknown target '{name_or_path}'", hint=hint)
    target = parse_document(TargetDescription, read_yaml(path, "target description"), path, "target description")
    if path.parent == pipelines_dir() / "targets" and target.name != path.stem:
        raise OptionError(f"bad target description: field 'name': '{target.name}' is not the file's name", file=path)
    return target


def _known_targets() -> str:
    return f"targets: {', '.join(target_names())}, or the path of a YAML description"
