"""Where the data files under `pipelines/` lie: inside the installed package, or at the root of a checkout."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from smartmem_mlir.errors import SmartMemError

_PACKAGE = Path(__file__).resolve().parents[1]


@cache
def pipelines_dir() -> Path:
    """The folder of pass pipelines and target descriptions.

    Raises:
        SmartMemError: The installation lacks it.
    """
    for candidate in (_PACKAGE / "pipelines", _PACKAGE.parents[1] / "pipelines"):
        if (candidate / "default.yaml").is_file():
            return candidate
    raise SmartMemError(
        "the pipelines folder is missing from this installation", hint="reinstall smartmem-mlir", file=_PACKAGE
    )
