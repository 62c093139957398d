"""The static graph as an ONNX model for torch-mlir."""

from __future__ import annotations

import onnx

from smartmem_mlir.ingress.onnx_model.reader import is_weight
from smartmem_mlir.ingress.onnx_model.specialize import StaticGraph
from smartmem_mlir.ingress.onnx_model.structure import node_label
from smartmem_mlir.ingress.onnx_model.tensors import LazyTensor


def parameters_of(graph: StaticGraph) -> dict[str, LazyTensor]:
    """The values that stay outside the IR: the live weights, and the folded constants that are as large as one."""
    parameters = dict(graph.weights)
    for name, value in graph.constants.items():
        if is_weight(graph.types[name]):
            parameters[name] = LazyTensor(graph.types[name], lambda value=value: value)  # type: ignore[misc]
    return parameters


def emit_model(graph: StaticGraph, parameters: dict[str, LazyTensor]) -> onnx.ModelProto:
    """Build a model whose inputs are the graph's inputs followed by its parameters.

    Args:
        graph: The static graph.
        parameters: What `parameters_of` gave.
    """

    def info(name: str) -> onnx.ValueInfoProto:
        return onnx.helper.make_value_info(name, graph.types[name].proto())

    literals = [
        onnx.numpy_helper.from_array(value, name) for name, value in graph.constants.items() if name not in parameters
    ]
    produced = [name for node in graph.nodes for name in node.output if name]
    outputs = set(graph.outputs)
    for node in graph.nodes:
        # torch-mlir makes a location of the name.
        node.name = node.name or node_label(node)
    proto = onnx.helper.make_graph(
        graph.nodes,
        "main",
        [info(name) for name in (*graph.inputs, *parameters)],
        [info(name) for name in graph.outputs],
        literals,
        value_info=[info(name) for name in produced if name not in outputs],
    )
    return onnx.helper.make_model(proto, opset_imports=[onnx.helper.make_opsetid("", graph.opset)])
