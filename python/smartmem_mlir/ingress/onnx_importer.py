"""ONNX file or proto to an imported model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from smartmem_mlir.ingress.isolated_lowering import lower_isolated
from smartmem_mlir.ingress.model import ImportedModel, ImportOptions
from smartmem_mlir.ingress.onnx_model.emit import emit_model, parameters_of
from smartmem_mlir.ingress.onnx_model.float_type import convert_inputs, convert_model
from smartmem_mlir.ingress.onnx_model.reader import OnnxModel, read_file
from smartmem_mlir.ingress.onnx_model.specialize import StaticGraph, specialize
from smartmem_mlir.ingress.onnx_model.static_dims import static_inputs
from smartmem_mlir.ingress.parameters import print_parameters
from smartmem_mlir.signature import Parameter, TensorSpec


def import_onnx(path: Path, options: ImportOptions, progress: Callable[[str], None]) -> ImportedModel:
    """Import an ONNX file; see :func:`smartmem_mlir.ingress.importer.load`."""
    progress("reading the model")
    return import_model(read_file(path), options, progress, name=path.stem, kind="onnx")


def static_graph(model: OnnxModel, options: ImportOptions) -> StaticGraph:
    """A model's graph with static shapes, in the floating-point type asked for, right for torch-mlir."""
    inputs = static_inputs(model.graph, options.dims, model.file)
    if options.dtype is not None:
        model = convert_model(model, options.dtype)
        inputs = convert_inputs(inputs, options.dtype)
    return specialize(model, inputs)


def import_model(
    model: OnnxModel,
    options: ImportOptions,
    progress: Callable[[str], None],
    *,
    name: str,
    kind: Literal["onnx", "torch"],
) -> ImportedModel:
    """Import a model that has been read.

    Args:
        model: The model.
        options: See `load`.
        progress: See `load`.
        name: Its short name.
        kind: Where it came from.
    """
    progress("folding shapes")
    graph = static_graph(model, options)
    weights = parameters_of(graph)
    progress("lowering to linalg")
    text = lower_isolated(emit_model(graph, weights), list(weights), model.file)
    specs = {key: TensorSpec(key, w.type.shape, w.type.mlir_dtype) for key, w in weights.items()}
    return ImportedModel(
        name=name,
        source=model.file,
        kind=kind,
        module=print_parameters(text),
        inputs=tuple(_spec(graph, given, given) for given in graph.inputs),
        outputs=tuple(
            _spec(graph, output.name, value) for output, value in zip(model.graph.output, graph.outputs, strict=True)
        ),
        parameters={key: Parameter(specs[key], w.load) for key, w in weights.items()},
    )


def _spec(graph: StaticGraph, name: str, value: str) -> TensorSpec:
    return TensorSpec(name, graph.types[value].shape, graph.types[value].mlir_dtype)
