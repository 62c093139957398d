"""Quantisation as the arithmetic that defines it: torch-mlir is wrong or refuses beyond the per-tensor case."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import onnx
from onnx import TensorProto

from smartmem_mlir.ingress.onnx_model.attributes import attribute, without
from smartmem_mlir.ingress.onnx_model.rewrites import build
from smartmem_mlir.ingress.onnx_model.rewrites.registry import Refuse, rewrite

if TYPE_CHECKING:
    from smartmem_mlir.ingress.onnx_model.specialize import Specializer

_RANGES: dict[int, tuple[int, int]] = {
    TensorProto.INT8: (-128, 127),
    TensorProto.UINT8: (0, 255),
    TensorProto.INT16: (-(1 << 15), (1 << 15) - 1),
}

MAX_EXACT = 1 << 24
"""Integers up to here are exact in f32."""


@rewrite("DequantizeLinear")
def dequantize(graph: Specializer, node: onnx.NodeProto) -> str:
    """`(x - zero_point) * scale`; the scale broadcasts along an axis, or in blocks of one."""
    value = node.input[0]
    scale = _broadcast(graph, node, node.input[1], value)
    element = graph.type(node.input[1]).element_type
    wide = build.cast(graph, value, TensorProto.INT32)
    if len(node.input) > 2 and node.input[2]:
        zero = build.cast(graph, _broadcast(graph, node, node.input[2], value), TensorProto.INT32)
        wide = graph.emit("Sub", [wide, zero])
    result = attribute(node, "output_dtype", 0) or element
    return build.cast(graph, graph.emit("Mul", [build.cast(graph, wide, element), scale]), result)


@rewrite("QuantizeLinear")
def quantize(graph: Specializer, node: onnx.NodeProto) -> str:
    """`saturate(round(x / scale) + zero_point)`."""
    value = node.input[0]
    has_zero = len(node.input) > 2 and node.input[2]
    target = graph.type(node.input[2]).element_type if has_zero else attribute(node, "output_dtype", 0)
    target = target or TensorProto.UINT8
    if target not in _RANGES:
        raise Refuse(f"quantising to {TensorProto.DataType.Name(target).lower()} is not supported")
    scale = build.cast(graph, _broadcast(graph, node, node.input[1], value), TensorProto.FLOAT)
    rounded = graph.emit("Round", [graph.emit("Div", [build.cast(graph, value, TensorProto.FLOAT), scale])])
    if has_zero:
        zero = build.cast(graph, _broadcast(graph, node, node.input[2], value), TensorProto.FLOAT)
        rounded = graph.emit("Add", [rounded, zero])
    low, high = (graph.const(bound, np.float32) for bound in _RANGES[target])
    clipped = graph.emit("Min", [graph.emit("Max", [rounded, low]), high])
    return build.cast(graph, build.cast(graph, clipped, TensorProto.INT32), target)


def _broadcast(graph: Specializer, node: onnx.NodeProto, operand: str, value: str) -> str:
    """A scale or zero point in a shape that broadcasts against the value."""
    shape, own = graph.type(value).shape, graph.type(operand).shape
    if graph.type(operand).elements == 1:
        return build.reshape(graph, operand, [])
    axis = attribute(node, "axis", 1) % len(shape)
    if len(own) == 1:
        return build.reshape(graph, operand, [own[0] if i == axis else 1 for i in range(len(shape))])
    block = attribute(node, "block_size", 0)
    return build.take(graph, operand, np.arange(shape[axis]) // block, axis)


@rewrite("MatMulInteger")
def matmul_integer(graph: Specializer, node: onnx.NodeProto) -> str:
    """A matrix product of the values less their zero points, in i32."""
    left = _centred(graph, node, 0, 2, rows=True)
    right = _centred(graph, node, 1, 3, rows=False)
    return str(graph.emit("MatMul", [left, right]))


@rewrite("ConvInteger")
def conv_integer(graph: Specializer, node: onnx.NodeProto) -> str:
    """A convolution of the values less their zero points, in f32, where it is exact as long as sums stay below 2^24."""
    weight_shape = graph.type(node.input[1]).shape
    if int(np.prod(weight_shape[1:])) * 255 * 255 > MAX_EXACT:
        raise Refuse("its sums may exceed what f32 holds exactly")
    value = build.cast(graph, _centred(graph, node, 0, 2, rows=False), TensorProto.FLOAT)
    kernel = _centred(graph, node, 1, 3, rows=False, axis=0)
    kernel = build.cast(graph, kernel, TensorProto.FLOAT)
    result = graph.emit("Conv", [value, kernel], **without(node))
    return build.cast(graph, result, TensorProto.INT32)


def _centred(
    graph: Specializer, node: onnx.NodeProto, operand: int, zero: int, *, rows: bool, axis: int | None = None
) -> str:
    value = build.cast(graph, node.input[operand], TensorProto.INT32)
    if len(node.input) <= zero or not node.input[zero]:
        return value
    point = build.cast(graph, node.input[zero], TensorProto.INT32)
    own, rank = graph.type(point).shape, graph.type(value).rank
    if axis is not None and own:
        point = build.reshape(graph, point, [-1 if i == axis else 1 for i in range(rank)])
    elif rows and len(own) == 1:
        point = build.reshape(graph, point, [own[0], 1])
    return str(graph.emit("Sub", [value, point]))


@rewrite("QLinearMatMul")
def qlinear_matmul(graph: Specializer, node: onnx.NodeProto) -> str:
    """An exact integer product, rescaled and quantised again."""
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = node.input
    product = graph.emit("MatMulInteger", [a, b, a_zero, b_zero])
    if graph.type(a_scale).rank == 1 and graph.type(a_scale).elements > 1:
        a_scale = build.reshape(graph, a_scale, [-1, 1])
    scales = graph.emit("Mul", [build.cast(graph, s, TensorProto.FLOAT) for s in (a_scale, b_scale)])
    real = graph.emit("Mul", [build.cast(graph, product, TensorProto.FLOAT), scales])
    return str(graph.emit("QuantizeLinear", [real, build.cast(graph, y_scale, TensorProto.FLOAT), y_zero]))


@rewrite("QLinearConv")
def qlinear_conv(graph: Specializer, node: onnx.NodeProto) -> str:
    """An exact integer convolution plus bias, rescaled and quantised again."""
    x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero = node.input[:8]
    rank = graph.type(x).rank
    product = graph.emit("ConvInteger", [x, w, x_zero, w_zero], **without(node))

    def per_channel(operand: str) -> str:
        if graph.type(operand).elements == 1:
            return build.reshape(graph, operand, [])
        return build.reshape(graph, operand, [1, -1] + [1] * (rank - 2))

    if len(node.input) > 8 and node.input[8]:
        product = graph.emit("Add", [product, per_channel(node.input[8])])
    scales = graph.emit("Mul", [per_channel(x_scale), per_channel(w_scale)])
    real = graph.emit("Mul", [build.cast(graph, product, TensorProto.FLOAT), scales])
    return str(graph.emit("QuantizeLinear", [real, y_scale, y_zero]))
