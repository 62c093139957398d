"""PyTorch programs: `torch.export` to ONNX in memory, then the ONNX importer.

One importer means one set of corrections, and one table of operators checked against the ONNX backend tests;
torch's own ONNX exporter is maintained with torch and decomposes to few operators with static shapes. Weights stay
in torch's memory and are read from there. torch and onnxscript are not dependencies: they are needed only here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from smartmem_mlir.errors import InvalidModelError, OptionError, UnsupportedModelError
from smartmem_mlir.ingress.model import ImportedModel, ImportOptions, require_trust
from smartmem_mlir.ingress.onnx_importer import import_model
from smartmem_mlir.ingress.onnx_model.reader import is_unread, read_proto
from smartmem_mlir.ingress.onnx_model.tensors import Array, LazyTensor, check_dims

EXPORT_OPSET = 20
"""Opset of the intermediate ONNX model: the first in which Gelu is one operator."""


def import_torch(source: Any, options: ImportOptions, progress: Callable[[str], None]) -> ImportedModel:
    """Import a PyTorch program.

    Args:
        source: A `torch.export.ExportedProgram`, or a pair `(module, example_inputs)` with a tuple of inputs.
        options: See :func:`smartmem_mlir.ingress.importer.load`.
        progress: See there.

    Raises:
        OptionError: The source is neither of those.
        UnsupportedModelError: torch cannot export it, torch or onnxscript is missing, or the importer refuses it.
    """
    torch = _torch()
    progress("exporting from torch")
    if isinstance(source, torch.export.ExportedProgram):
        program = source
    elif isinstance(source, tuple) and len(source) == 2 and isinstance(source[0], torch.nn.Module):
        module, inputs = source
        program = _export(torch, module, tuple(inputs))
    else:
        raise OptionError(
            f"cannot import a {type(source).__name__}",
            hint="give a path, a torch.export.ExportedProgram, or (module, example_inputs)",
        )
    return _import_program(torch, program, None, options, progress)


def import_pt2(path: Path, options: ImportOptions, progress: Callable[[str], None]) -> ImportedModel:
    """Import a program that `torch.export.save` wrote.

    Raises:
        OptionError: The options do not say that the file is trusted.
        InvalidModelError: torch cannot load it.
    """
    require_trust(path, options.trusted)
    torch = _torch()
    progress("reading the model")
    try:
        program = torch.export.load(path)
    except Exception as error:  # torch raises many types on a damaged archive
        raise InvalidModelError(
            f"torch cannot load the file: {_one_line(error)}", hint="write it with torch.export.save", file=path
        ) from error
    return _import_program(torch, program, path, options, progress)


def _import_program(
    torch: Any, program: Any, path: Path | None, options: ImportOptions, progress: Callable[[str], None]
) -> ImportedModel:
    try:
        exported = torch.onnx.export(program, dynamo=True, opset_version=EXPORT_OPSET, verbose=False)
    except Exception as error:  # the exporter's own errors carry whole reports
        raise UnsupportedModelError(f"torch cannot export the program: {_one_line(error)}", file=path) from error
    proto, weights = _detach_weights(exported.model, path)
    model = read_proto(proto, path, weights=weights)
    return import_model(model, options, progress, name=path.stem if path else "torch", kind="torch")


def _detach_weights(model: Any, path: Path | None) -> tuple[onnx.ModelProto, dict[str, LazyTensor]]:
    """Serialize an in-memory ONNX model without its large initializers."""
    onnx_ir = import_module("onnx_ir")
    weights: dict[str, LazyTensor] = {}
    for name, value in model.graph.initializers.items():
        tensor = value.const_value
        checked = check_dims(list(tensor.shape.numpy()), int(tensor.dtype), file=path, node=name)
        if is_unread(checked):
            weights[name] = LazyTensor(checked, partial(_values, tensor))
            value.const_value = onnx_ir.ExternalTensor(
                "detached", 0, checked.nbytes, tensor.dtype, shape=tensor.shape, name=name
            )
    return onnx_ir.to_proto(model), weights


def _values(tensor: Any) -> Array:
    return np.ascontiguousarray(tensor.numpy())


def _export(torch: Any, module: Any, inputs: tuple[Any, ...]) -> Any:
    try:
        return torch.export.export(module.eval(), inputs)
    except Exception as error:
        raise UnsupportedModelError(f"torch.export fails on the module: {_one_line(error)}") from error


def _torch() -> Any:
    """torch, if what its ONNX exporter needs is there too."""
    try:
        for package in ("onnxscript", "onnx_ir"):
            import_module(package)
        return import_module("torch")
    except ImportError as error:
        raise OptionError(
            f"importing from PyTorch needs the package {error.name!r}", hint="pip install torch onnxscript"
        ) from error


def _one_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
