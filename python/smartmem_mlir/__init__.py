"""SmartMem-MLIR: compile neural networks with the fewest layout transformations.

>>> import smartmem_mlir as sm  # doctest: +SKIP
>>> compiled = sm.compile("model.onnx", target="cpu")  # doctest: +SKIP
>>> outputs = compiled.run({"x": array})  # doctest: +SKIP

The names below are loaded when they are first used, so that importing the package costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from smartmem_mlir.api import CompiledModel, CompileOptions, VerifyResult, check, compile, emit, load, run

__all__ = ["CompileOptions", "CompiledModel", "VerifyResult", "check", "compile", "emit", "load", "run"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    from smartmem_mlir import api

    return getattr(api, name)
