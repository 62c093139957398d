"""The environment of the importers' child processes."""

from __future__ import annotations

import os
from pathlib import Path

import smartmem_mlir


def child_environment() -> dict[str, str]:
    """Our environment, in which a child also finds this package when it is used from a source tree."""
    root = str(Path(next(iter(smartmem_mlir.__path__))).parent)
    path = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{path}" if path else root}
