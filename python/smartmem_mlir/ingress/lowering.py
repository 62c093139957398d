"""ONNX to linalg through torch-mlir, in this process.

torch-mlir is C++ with assertions: on a graph that it does not expect it can abort. Only the worker process
(`lowering_worker`) and tests call this module; everything else goes through `isolated_lowering`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import onnx

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


def lower(model: onnx.ModelProto, parameters: Sequence[str]) -> str:
    """Lower a static ONNX model to linalg on tensors.

    Args:
        model: Its graph's inputs are the model's inputs followed by the parameters.
        parameters: Names of the parameters, in the order of the inputs.

    Returns:
        The module as text. Each parameter is `"smartmem.parameter"() {key = "name"}` instead of an argument.

    Raises:
        LoweringError: torch-mlir does not accept the model.
    """
    from torch_mlir import ir
    from torch_mlir.dialects import torch as torch_dialect
    from torch_mlir.extras import onnx_importer
    from torch_mlir.passmanager import PassManager

    with ir.Context() as context:
        torch_dialect.register_dialect(context)
        context.allow_unregistered_dialects = True
        try:
            info = onnx_importer.ModelInfo(model)
            module = info.create_module(context=context)
            onnx_importer.NodeImporter.define_function(info.main_graph, module.operation).import_all()
            for pipeline in PIPELINES:
                PassManager.parse(pipeline).run(module.operation)
        except (ir.MLIRError, onnx_importer.OnnxImportError, KeyError, ValueError, TypeError) as error:
            raise LoweringError(_first_line(error)) from error
        _parameters_for_arguments(ir, module, parameters)
        _check_dialects(ir, module)
        return str(module)


def _parameters_for_arguments(ir: Any, module: Any, parameters: Sequence[str]) -> None:
    function = module.body.operations[0]
    block = function.regions[0].blocks[0]
    first = len(block.arguments) - len(parameters)
    with ir.Location.unknown(), ir.InsertionPoint.at_block_begin(block):
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


def _check_dialects(ir: Any, module: Any) -> None:
    found: set[str] = set()

    def visit(operation: Any) -> Any:
        if operation.name.startswith(FOREIGN_DIALECTS):
            found.add(operation.name)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    if found:
        raise LoweringError(f"torch-mlir lowers it to {', '.join(sorted(found))}, which neither MLIR nor IREE knows")


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
