"""Which IREE is installed."""

from __future__ import annotations

import importlib.util
from functools import cache
from importlib import metadata
from pathlib import Path

from smartmem_mlir.errors import SmartMemError

COMPILER_PACKAGE = "iree-base-compiler"
RUNTIME_PACKAGE = "iree-base-runtime"


def package_version(package: str) -> str | None:
    """Version of an installed distribution, None if it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


@cache
def iree_compile() -> Path:
    """The iree-compile binary of the installed wheel.

    Found without importing `iree.compiler`, whose libraries cannot share a process with MLIR's.

    Raises:
        SmartMemError: The compiler is not installed.
    """
    spec = importlib.util.find_spec("iree.compiler") if importlib.util.find_spec("iree") else None
    for folder in (spec.submodule_search_locations or []) if spec else []:
        binary = Path(folder) / "_mlir_libs" / "iree-compile"
        if binary.is_file():
            return binary
    raise SmartMemError("iree-compile is not installed", hint=f"pip install {COMPILER_PACKAGE}")
