"""Compute in another floating-point type: every float tensor of a model changes its element type.

The conversion is made here because IREE's own (`--iree-input-demote-f32-to-f16`) breaks the function boundary.
Integers and booleans stay. An operand that its operator only takes in one type (the scales of a Resize) is cast
there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

import numpy as np
import onnx
from onnx import TensorProto

from smartmem_mlir.ingress.onnx_model.reader import OnnxModel, inline_values
from smartmem_mlir.ingress.onnx_model.tensors import FLOAT_TYPES, Array, LazyTensor, TensorType, check_dims

_ELEMENT_TYPES = {"f32": TensorProto.FLOAT, "f16": TensorProto.FLOAT16}

# Attributes that name an element type.
_TYPE_ATTRIBUTES = ("to", "dtype", "output_dtype")


def convert_inputs(inputs: Mapping[str, TensorType], dtype: Literal["f32", "f16"]) -> dict[str, TensorType]:
    """The types of a model's inputs after conversion."""
    return {name: _converted(type_, _ELEMENT_TYPES[dtype]) for name, type_ in inputs.items()}


def convert_model(model: OnnxModel, dtype: Literal["f32", "f16"]) -> OnnxModel:
    """Convert a model's weights (lazily), constants and nodes.

    Args:
        model: The model; its graph is copied.
        dtype: The type to compute in.
    """
    target = _ELEMENT_TYPES[dtype]
    graph = onnx.GraphProto()
    graph.CopyFrom(model.graph)
    nodes: list[onnx.NodeProto] = []
    for node in graph.node:
        _convert_attributes(node, target)
        nodes.extend(_fixed_type_casts(node, model.opsets[""], target))
    del graph.node[:]
    graph.node.extend(nodes)
    return replace(
        model,
        graph=graph,
        constants={name: convert_values(value, target) for name, value in model.constants.items()},
        weights={name: _converted_weight(weight, target) for name, weight in model.weights.items()},
    )


def convert_values(values: Array, target: int) -> Array:
    """Convert float values; a finite value that f16 cannot hold becomes its largest, so that masks stay finite.

    A mask of -3.4e38 would become -inf, and a softmax over a fully masked row then NaN.
    """
    if values.dtype.kind != "f":
        return values
    dtype = onnx.helper.tensor_dtype_to_np_dtype(target)
    if dtype.itemsize < values.dtype.itemsize:
        limit = np.finfo(dtype).max
        clipped = np.clip(values, -limit, limit)
        values = np.where(np.isfinite(values), clipped, values)
    return np.ascontiguousarray(values.astype(dtype)).reshape(values.shape)


def _converted(type_: TensorType, target: int) -> TensorType:
    return replace(type_, element_type=target) if type_.element_type in FLOAT_TYPES else type_


def _converted_weight(weight: LazyTensor, target: int) -> LazyTensor:
    if not weight.type.is_float or weight.type.element_type == target:
        return weight
    return LazyTensor(_converted(weight.type, target), lambda: convert_values(weight.load(), target))


def _convert_attributes(node: onnx.NodeProto, target: int) -> None:
    for a in node.attribute:
        if a.name in _TYPE_ATTRIBUTES and a.type == onnx.AttributeProto.INT and a.i in FLOAT_TYPES:
            a.i = target
        elif a.type == onnx.AttributeProto.TENSOR and a.t.data_type in FLOAT_TYPES:
            checked = check_dims(a.t.dims, a.t.data_type, file=None, node=node.name)
            a.t.CopyFrom(onnx.numpy_helper.from_array(convert_values(inline_values(a.t, checked, None), target)))
        elif a.type == onnx.AttributeProto.GRAPH:
            for inner in a.g.node:
                _convert_attributes(inner, target)
    if node.op_type == "Constant" and not node.domain:
        for a in node.attribute:
            if a.name in ("value_float", "value_floats"):
                values = np.asarray(onnx.helper.get_attribute_value(a), dtype=np.float32)
                a.CopyFrom(
                    onnx.helper.make_attribute("value", onnx.numpy_helper.from_array(convert_values(values, target)))
                )


def _fixed_type_casts(node: onnx.NodeProto, opset: int, target: int) -> list[onnx.NodeProto]:
    """The node, behind casts of those operands that its operator takes as f32 only."""
    if node.domain or not onnx.defs.has(node.op_type):
        return [node]
    try:
        schema = onnx.defs.get_schema(node.op_type, opset)
    except onnx.defs.SchemaError:
        return [node]
    casts: list[onnx.NodeProto] = []
    for i, name in enumerate(node.input):
        formal = schema.inputs[min(i, len(schema.inputs) - 1)] if schema.inputs else None
        if name and formal is not None and formal.type_str == "tensor(float)" and target != TensorProto.FLOAT:
            cast = f"{name}/as_f32_for_{node.output[0]}"
            casts.append(onnx.helper.make_node("Cast", [name], [cast], name=node.name, to=TensorProto.FLOAT))
            node.input[i] = cast
    return [*casts, node]
