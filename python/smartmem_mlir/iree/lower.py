"""The part of a compilation that runs in MLIR: parse, passes, emit."""

from __future__ import annotations

from mlir import ir, passmanager

import smartmem_mlir.dialects
from smartmem_mlir.errors import CompilerError
from smartmem_mlir.iree.emit import convert_to_iree, set_device_targets
from smartmem_mlir.targets import Pipeline, TargetDescription


def run_passes(module_text: str, pipeline: Pipeline) -> str:
    """Run a pipeline on a module in our dialect.

    Args:
        module_text: MLIR 22 text.
        pipeline: The passes.

    Raises:
        CompilerError: A pass failed, or there is no such pass.
    """
    with ir.Context():
        module = _parse(module_text)
        if pipeline.passes:
            try:
                passmanager.PassManager.parse(pipeline.text()).run(module.operation)
            except ir.MLIRError as error:
                raise CompilerError(f"pipeline '{pipeline.name}' failed: {_first_diagnostic(error)}") from error
            except ValueError as error:
                raise CompilerError(f"pipeline '{pipeline.name}': {' '.join(str(error).split())}") from error
        return str(module)


def emit_iree(module_text: str, target: TargetDescription) -> str:
    """A module in our dialect as iree-compile reads it.

    Args:
        module_text: MLIR 22 text with `smartmem.parameter` operations.
        target: Named in the module where iree-compile has no flags for it.
    """
    with ir.Context():
        module = _parse(module_text)
        convert_to_iree(module.operation)
        set_device_targets(module.operation, target)
        return str(module)


def _parse(text: str) -> ir.Module:
    try:
        return ir.Module.parse(text)
    except ir.MLIRError as error:
        raise CompilerError(f"the module does not parse: {_first_diagnostic(error)}") from error


def _first_diagnostic(error: ir.MLIRError) -> str:
    diagnostics = error.error_diagnostics
    return str(diagnostics[0].message) if diagnostics else " ".join(str(error).split())
