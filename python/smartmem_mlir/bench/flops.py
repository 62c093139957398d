"""How much arithmetic a model does: the multiply-adds of its contractions, from static shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path

import onnx

from smartmem_mlir.errors import SmartMemError
from smartmem_mlir.ingress.model import ImportOptions
from smartmem_mlir.ingress.onnx_importer import static_graph
from smartmem_mlir.ingress.onnx_model.reader import read_file

Shapes = Mapping[str, Sequence[int]]


def count_flops(path: Path, dims: Mapping[str, int]) -> tuple[int | None, int]:
    """Arithmetic of one inference and bytes of its outputs.

    Args:
        path: ONNX file.
        dims: Sizes of symbolic dimensions.

    Returns:
        Twice the multiply-adds of convolutions and matrix products (elementwise work is left out, as in published
        figures), and the outputs' bytes; `(None, 0)` for a model that our importer does not read.
    """
    try:
        graph = static_graph(read_file(path), ImportOptions(dims=dims))
    except SmartMemError:
        return None, 0
    shapes = {name: kind.shape for name, kind in graph.types.items()}
    flops = 2 * sum(multiply_adds(node, shapes) for node in graph.nodes)
    outputs = (graph.types[name] for name in graph.outputs)
    width = onnx.helper.tensor_dtype_to_np_dtype
    return flops, sum(kind.elements * width(kind.element_type).itemsize for kind in outputs)


def multiply_adds(node: onnx.NodeProto, shapes: Shapes) -> int:
    """Multiply-adds of one node; 0 for anything but a contraction."""
    attributes = {attribute.name: attribute for attribute in node.attribute}
    if node.op_type == "Conv":
        return prod(shapes[node.output[0]]) * prod(shapes[node.input[1]][1:])
    if node.op_type == "ConvTranspose":
        return prod(shapes[node.input[0]]) * prod(shapes[node.input[1]][1:])
    if node.op_type == "MatMul":
        return prod(shapes[node.output[0]]) * shapes[node.input[0]][-1]
    if node.op_type == "Gemm":
        transposed = "transA" in attributes and attributes["transA"].i != 0
        return prod(shapes[node.output[0]]) * shapes[node.input[0]][0 if transposed else 1]
    if node.op_type == "Einsum":
        return _einsum_points(attributes["equation"].s.decode(), [shapes[name] for name in node.input])
    return 0


def _einsum_points(equation: str, operands: Sequence[Sequence[int]]) -> int:
    """Size of the iteration space; 0 with fewer than two operands, where nothing is multiplied."""
    if len(operands) < 2:
        return 0
    extents: dict[str, int] = {}
    for term, shape in zip(equation.split("->")[0].replace(" ", "").split(","), operands, strict=True):
        named = term.replace("...", "")
        free = len(shape) - len(named)
        letters = [f"...{free - axis}" for axis in range(free)] if "..." in term else []
        start = term.find("...")
        labels = [*named[:start], *letters, *named[start:]] if start >= 0 else list(named)
        for label, extent in zip(labels, shape, strict=True):
            extents[label] = max(extent, extents.get(label, 1))
    return prod(extents.values())
