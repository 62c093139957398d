"""The Python interface: compile a model, open what was compiled, run it, verify it."""

from __future__ import annotations

from smartmem_mlir.api.compilation import compile, default_output, emit, import_model, tool_versions
from smartmem_mlir.api.compiled_model import CompiledModel, check, load, run
from smartmem_mlir.api.options import STAGES, CompileOptions, Progress, Stage
from smartmem_mlir.api.verification import VerifyResult

__all__ = [
    "STAGES",
    "CompileOptions",
    "CompiledModel",
    "Progress",
    "Stage",
    "VerifyResult",
    "check",
    "compile",
    "default_output",
    "emit",
    "import_model",
    "load",
    "run",
    "tool_versions",
]
