"""Gathers from a weight at positions that are known: a weight of their own, evaluated when the archive is written.

Relative position biases are exported so: a small table of weights, read at a constant table of positions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import onnx

from smartmem_mlir.ingress.onnx_model.fold import MAX_FOLDED_ELEMENTS, evaluate
from smartmem_mlir.ingress.onnx_model.tensors import LazyTensor, TensorType

if TYPE_CHECKING:
    from smartmem_mlir.ingress.onnx_model.specialize import Specializer

_GATHERS = frozenset({"Gather", "GatherElements", "GatherND"})


def gathered_weight(graph: Specializer, node: onnx.NodeProto, types: Mapping[str, TensorType]) -> LazyTensor | None:
    """The result of a gather as a weight; None for other nodes and for what is too large to be stored twice.

    Args:
        graph: Knows the operands.
        node: The node.
        types: The inferred types of its outputs.
    """
    if node.op_type not in _GATHERS:
        return None
    table, positions, result = graph.weight(node.input[0]), graph.constant(node.input[1]), types[node.output[0]]
    if table is None or positions is None or max(table.type.elements, result.elements) > MAX_FOLDED_ELEMENTS:
        return None
    # Where each element of the result lies in the table: the node itself, run on the table's own positions.
    places = np.arange(table.type.elements, dtype=np.int64).reshape(table.type.shape)
    taken = evaluate(node, graph.opset, [places, positions])
    if taken is None or taken[0].shape != result.shape:
        return None
    read = taken[0].astype(np.int32)
    return LazyTensor(result, lambda: table.load().reshape(-1)[read])
