"""Normalisations, and operators that do nothing at inference."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import onnx
from onnx import TensorProto

from smartmem_mlir.ingress.onnx_model.attributes import attribute, attributes_of
from smartmem_mlir.ingress.onnx_model.rewrites import build
from smartmem_mlir.ingress.onnx_model.rewrites.registry import Refuse, rewrite

if TYPE_CHECKING:
    from smartmem_mlir.ingress.onnx_model.specialize import Specializer


@rewrite("Dropout")
def dropout(graph: Specializer, node: onnx.NodeProto) -> list[str]:
    """Nothing at inference; the mask, if asked for, is all true."""
    training = build.known(graph, node, 2)
    if training is not None and training.item():
        ratio = build.known(graph, node, 1)
        if ratio is None or ratio.item() != 0:
            raise Refuse("dropout in training mode is random")
    mask = graph.const(np.ones(graph.type(node.input[0]).shape, dtype=bool), np.bool_)
    return [node.input[0], mask][: len(node.output)]


@rewrite("LpNormalization")
def lp_normalization(graph: Specializer, node: onnx.NodeProto) -> str:
    """As defined: a zero vector stays zero, where torch-mlir divides zero by zero."""
    value = node.input[0]
    axis = attribute(node, "axis", -1) % graph.type(value).rank
    operator = "ReduceL1" if attribute(node, "p", 2) == 1 else "ReduceL2"
    norm = build.reduce(graph, operator, value, [axis], keepdims=True)
    zero = build.scalar(graph, 0, value)
    quotient = graph.emit("Div", [value, norm])
    return str(graph.emit("Where", [graph.emit("Equal", [norm, zero]), zero, quotient]))


@rewrite("ReduceMin", "ReduceMax")
def reduce_all(graph: Specializer, node: onnx.NodeProto) -> str | None:
    """All axes by number where they are omitted: torch-mlir takes a minimum only with axes."""
    value = graph.type(node.input[0])
    axes = build.known(graph, node, 1)
    if (axes is not None and axes.size) or attribute(node, "noop_with_empty_axes", 0) or not value.rank:
        return None
    keepdims = attribute(node, "keepdims", 1)
    return build.reduce(graph, node.op_type, node.input[0], range(value.rank), keepdims=bool(keepdims))


_OF_ONE = {"ReduceL1": "Abs", "ReduceL2": "Abs", "ReduceLogSum": "Log"}
"""What a reduction of a single element computes, where that is not the element."""


@rewrite(
    "GlobalAveragePool",
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceMean",
    "ReduceSum",
    "ReduceSumSquare",
)
def sum_of_floats(graph: Specializer, node: onnx.NodeProto) -> str | None:
    """Sums of f16 in f32, and sums of one element without a sum.

    In f16 sums overflow and lose digits; ONNX Runtime and torch-mlir's own products accumulate in f32 too. torch-mlir
    crashes on some reductions of one element.
    """
    value, result = graph.type(node.input[0]), graph.type(node.output[0])
    if value.elements == result.elements and node.op_type in (
        "ReduceL1",
        "ReduceL2",
        "ReduceLogSum",
        "ReduceLogSumExp",
    ):
        operator = _OF_ONE.get(node.op_type)
        single = graph.emit(operator, [node.input[0]]) if operator else node.input[0]
        return build.reshape(graph, single, result.shape)
    if value.element_type != TensorProto.FLOAT16:
        return None
    wide = build.cast(graph, node.input[0], TensorProto.FLOAT)
    total = graph.emit(node.op_type, [wide, *node.input[1:]], **attributes_of(node))
    return build.cast(graph, total, TensorProto.FLOAT16)
