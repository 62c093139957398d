"""Pooling windows that stick out, and pools that torch-mlir lacks."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

import numpy as np
import onnx
from onnx import TensorProto

from smartmem_mlir.ingress.onnx_model.attributes import attribute, without
from smartmem_mlir.ingress.onnx_model.rewrites import build
from smartmem_mlir.ingress.onnx_model.rewrites.normalization import sum_of_floats
from smartmem_mlir.ingress.onnx_model.rewrites.registry import Refuse, rewrite
from smartmem_mlir.ingress.onnx_model.rewrites.windows import explicit_windows, window_axes

if TYPE_CHECKING:
    from smartmem_mlir.ingress.onnx_model.specialize import Specializer


@rewrite("AveragePool", "MaxPool")
def overhanging(graph: Specializer, node: onnx.NodeProto) -> Sequence[str] | str | None:
    """With `ceil_mode` the last window may reach beyond the padding: pad so far, and divide by what counts.

    torch-mlir leaves such windows out or indexes beyond the input.
    """
    if any(node.output[1:]):
        if attribute(node, "storage_order", 0):
            raise Refuse("column-major indices are not supported")
        if prod(graph.type(node.input[0]).shape[:2]) > 1:
            # ONNX counts over the whole tensor, torch-mlir within each plane.
            raise Refuse("indices into more than one plane are not supported")
    if node.op_type == "AveragePool" and graph.type(node.input[0]).element_type == TensorProto.FLOAT16:
        return sum_of_floats(graph, node)
    explicit = explicit_windows(graph, node)
    if explicit is not None or not attribute(node, "ceil_mode", 0):
        return explicit
    axes = window_axes(graph, node)
    if all(axis.overhang <= 0 for axis in axes):
        floor = without(node, "ceil_mode")
        results: Sequence[str] | str = graph.emit(node.op_type, node.input, outputs=len(node.output), **floor)
        return results
    if any(node.output[1:]):
        raise Refuse("indices of windows that reach beyond the padding are not supported")
    value = node.input[0]
    average = node.op_type == "AveragePool"
    amounts = [0, 0, *(a.before for a in axes), 0, 0, *(a.after + max(a.overhang, 0) for a in axes)]
    fill = build.scalar(graph, 0 if average else -np.inf, value)
    padded = graph.emit("Pad", [value, graph.const(amounts), fill])
    kept = without(node, "pads", "ceil_mode", "count_include_pad", "auto_pad")
    pooled = graph.emit(node.op_type, [padded], **kept, **({"count_include_pad": 1} if average else {}))
    if not average:
        return str(pooled)
    factors = np.asarray(prod(a.kernel for a in axes), dtype=np.float64)
    for i, axis in enumerate(axes):
        counts = axis.counts(padding=bool(attribute(node, "count_include_pad", 0)))
        factors = factors / np.maximum(counts, 1).reshape([-1 if j == i else 1 for j in range(len(axes))])
    return str(graph.emit("Mul", [pooled, build.array_like(graph, factors, value)]))


@rewrite("LpPool")
def lp_pool(graph: Specializer, node: onnx.NodeProto) -> str:
    """The p-th root of an average of p-th powers, times the window's size."""
    if attribute(node, "ceil_mode", 0):
        raise Refuse("ceil_mode is not supported")
    value = node.input[0]
    p = build.scalar(graph, attribute(node, "p", 2), value)
    powers = graph.emit("Pow", [graph.emit("Abs", [value]), p])
    means = graph.emit("AveragePool", [powers], **without(node, "p"), count_include_pad=1)
    sums = graph.emit("Mul", [means, build.scalar(graph, prod(attribute(node, "kernel_shape")), value)])
    return str(graph.emit("Pow", [sums, build.scalar(graph, 1 / attribute(node, "p", 2), value)]))
