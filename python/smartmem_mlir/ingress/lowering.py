"""ONNX to linalg through torch-mlir, in this process.

torch-mlir is C++ with assertions: on a graph that it does not expect it can abort. Only the worker process
(`lowering_worker`) and tests call this module; everything else goes through `isolated_lowering`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import onnx

from smartmem_mlir.i1_text import pack_i1

PIPELINES = (
    "builtin.module(func.func(convert-torch-onnx-to-torch))",
    "builtin.module(torch-onnx-to-torch-backend-pipeline)",
    "builtin.module(torch-backend-to-linalg-on-tensors-backend-pipeline)",
)

PARAMETER_OP = "smartmem.parameter"

FOREIGN_DIALECTS = ("torch.", "torch_c.", "tm_tensor.")
"""Dialects of torch-mlir that MLIR and IREE do not know: an operator that ends in them is not lowered."""


class LoweringError(Exception):
    """torch-mlir rejected the model; the text is its first diagnostic."""


def lower(models: Sequence[onnx.ModelProto], parameters: Sequence[str]) -> list[str | LoweringError]:
    """Lower static ONNX models to linalg on tensors, as functions of one module: most of the time that a small model
    takes is spent once a module.

    Args:
        models: Each graph's inputs are the model's inputs followed by the parameters.
        parameters: Names of the parameters, in the order of the inputs.

    Returns:
        For each model its module as text, with one function `@main`, or why it is refused although torch-mlir accepts
        it. Each parameter is `"smartmem.parameter"() {key = "name"}` instead of an argument.

    Raises:
        LoweringError: torch-mlir does not accept some model.
    """
    from torch_mlir import ir
    from torch_mlir.dialects import torch as torch_dialect
    from torch_mlir.extras import onnx_importer
    from torch_mlir.passmanager import PassManager

    with ir.Context() as context, ir.Location.unknown():
        torch_dialect.register_dialect(context)
        context.allow_unregistered_dialects = True
        module = ir.Module.create()
        try:
            for position, model in enumerate(models):
                model.graph.name = f"main_{position}"
                info = onnx_importer.ModelInfo(model)
                onnx_importer.NodeImporter.define_function(info.main_graph, module.operation).import_all()
            for pipeline in PIPELINES:
                PassManager.parse(pipeline).run(module.operation)
        except (ir.MLIRError, onnx_importer.OnnxImportError, KeyError, ValueError, TypeError) as error:
            raise LoweringError(_first_line(error)) from error
        functions = {f.attributes["sym_name"].value: f for f in module.body.operations}
        return [_finish(ir, functions[f"main_{position}"], parameters) for position in range(len(models))]


def _finish(ir: Any, function: Any, parameters: Sequence[str]) -> str | LoweringError:
    """A lowered function as the text of a module of its own."""
    _parameters_for_arguments(ir, function, parameters)
    foreign = _foreign_operations(ir, function)
    if foreign:
        return LoweringError(f"torch-mlir lowers it to {', '.join(foreign)}, which neither MLIR nor IREE knows")
    module = ir.Module.create()
    copied = function.operation.clone(ip=ir.InsertionPoint(module.body))
    copied.attributes["sym_name"] = ir.StringAttr.get("main")
    # Locations name the model's nodes; the passes carry them along.
    return pack_i1(module.operation.get_asm(enable_debug_info=True))


def _parameters_for_arguments(ir: Any, function: Any, parameters: Sequence[str]) -> None:
    block = function.regions[0].blocks[0]
    first = len(block.arguments) - len(parameters)
    with ir.InsertionPoint.at_block_begin(block):
        for argument, name in zip(list(block.arguments)[first:], parameters, strict=True):
            key = ir.StringAttr.get(name)
            value = ir.Operation.create(PARAMETER_OP, [argument.type], attributes={"key": key}).result
            argument.replace_all_uses_with(value)
    for _ in parameters:
        block.erase_argument(first)
    results = function.attributes["function_type"].value.results
    function.attributes["function_type"] = ir.TypeAttr.get(
        ir.FunctionType.get([a.type for a in block.arguments], results)
    )
    for name in [name for name in function.attributes if name.startswith("torch.")]:
        del function.attributes[name]


def _foreign_operations(ir: Any, function: Any) -> list[str]:
    found: set[str] = set()

    def visit(operation: Any) -> Any:
        if operation.name.startswith(FOREIGN_DIALECTS):
            found.add(operation.name)
        return ir.WalkResult.ADVANCE

    function.operation.walk(visit)
    return sorted(found)


def _first_line(error: Exception) -> str:
    diagnostics = [d.message for d in getattr(error, "error_diagnostics", [])]
    lines = [line.strip() for line in (diagnostics or [str(error)])[0].splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    # Diagnostics end in the operation's text, which names nothing that the user knows.
    message = re.split(r': (?=%|"torch)', lines[0])[0]
    illegal = re.match(r"failed to legalize operation '(torch\.[\w.]+)'", message)
    if illegal and illegal[1] == "torch.operator":
        return "torch-mlir does not lower this form of the operator"
    return f"torch-mlir does not lower {illegal[1]}" if illegal else f"torch-mlir: {message}"
