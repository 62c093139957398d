"""Running sums and products, and sorting."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import onnx

from smartmem_mlir.ingress.onnx_model.attributes import attribute
from smartmem_mlir.ingress.onnx_model.rewrites import build
from smartmem_mlir.ingress.onnx_model.rewrites.registry import Refuse, rewrite

if TYPE_CHECKING:
    from smartmem_mlir.ingress.onnx_model.specialize import Specializer

MAX_TOPK_PAIRS = 1 << 26
"""TopK compares all pairs of a row; rows with more pairs are refused."""


@rewrite("CumSum", "CumProd")
def cumulative(graph: Specializer, node: onnx.NodeProto) -> str:
    """A scan in log2(n) steps, each adding the value 2^k places before; torch-mlir has no lowering of either."""
    axis_value = build.known(graph, node, 1)
    assert axis_value is not None
    value = node.input[0]
    shape = graph.type(value).shape
    axis = int(axis_value.reshape(-1)[0]) % len(shape)
    size = shape[axis]
    operator, neutral = ("Add", 0) if node.op_type == "CumSum" else ("Mul", 1)
    reverse = attribute(node, "reverse", 0)

    def shifted(source: str, places: int) -> str:
        kept = max(size - places, 0)
        filler = build.array_like(graph, np.full([*shape[:axis], size - kept, *shape[axis + 1 :]], neutral), source)
        if kept == 0:
            return filler
        if reverse:
            return build.concat(graph, [build.cut(graph, source, axis, places, size), filler], axis)
        return build.concat(graph, [filler, build.cut(graph, source, axis, 0, kept)], axis)

    if attribute(node, "exclusive", 0):
        value = shifted(value, 1)
    places = 1
    while places < size:
        value = graph.emit(operator, [value, shifted(value, places)])
        places *= 2
    return value


@rewrite("TopK")
def top_k(graph: Specializer, node: onnx.NodeProto) -> list[str]:
    """Rank by counting: an element's rank is the number of elements before it in the order.

    torch-mlir sorts with an operation of its own that neither MLIR nor IREE knows. Counting needs n^2 comparisons,
    which fuse into one reduction without a tensor of that size.
    """
    count = build.known(graph, node, 1)
    assert count is not None
    value = node.input[0]
    shape = graph.type(value).shape
    axis, k = attribute(node, "axis", -1) % len(shape), int(count.reshape(-1)[0])
    size = shape[axis]
    if size * size > MAX_TOPK_PAIRS:
        raise Refuse(f"it would compare {size} x {size} pairs a row")
    order = [i for i in range(len(shape)) if i != axis] + [axis]
    rows = build.transpose(graph, value, order)
    outer = [shape[i] for i in order[:-1]]
    left = build.reshape(graph, rows, [*outer, size, 1])
    right = build.reshape(graph, rows, [*outer, 1, size])
    comparison = "Greater" if attribute(node, "largest", 1) else "Less"
    earlier = graph.const(np.tri(size, k=-1, dtype=bool), np.bool_)
    ties = graph.emit("And", [graph.emit("Equal", [left, right]), earlier])
    before = graph.emit("Or", [graph.emit(comparison, [right, left]), ties])
    rank = build.reduce(graph, "ReduceSum", build.cast(graph, before, onnx.TensorProto.INT64), [len(shape)])
    place = graph.const(np.arange(k).reshape(k, 1))
    chosen = graph.emit("Equal", [build.reshape(graph, rank, [*outer, 1, size]), place])
    values = graph.emit("Where", [chosen, right, build.scalar(graph, 0, value)])
    values = build.reduce(graph, "ReduceSum", values, [len(shape)])
    indices = graph.emit("Where", [chosen, graph.const(np.arange(size)), graph.const(0)])
    indices = build.reduce(graph, "ReduceSum", indices, [len(shape)])
    back = [order.index(i) for i in range(len(shape))]
    return [build.transpose(graph, values, back), build.transpose(graph, indices, back)]
