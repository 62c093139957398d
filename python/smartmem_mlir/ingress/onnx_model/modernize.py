"""Operators of older opsets in the form that they have at opset 22.

torch-mlir knows some operators only in their newer forms, and does not look at the opset where the same attributes mean
something else (the axis of a Softmax). So every node of the model is first brought to one opset, and inference,
folding, rewrites and torch-mlir see only that.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, TypeAlias

import onnx

from smartmem_mlir.ingress.onnx_model.attributes import attribute, without
from smartmem_mlir.ingress.onnx_model.rewrites import Refuse, build

if TYPE_CHECKING:
    from smartmem_mlir.ingress.onnx_model.specialize import Specializer

MODERN_OPSET = 22
"""Nodes of older opsets are brought to this one; newer models stay as they are."""

_Modernize: TypeAlias = "Callable[[Specializer, onnx.NodeProto], str | None]"


def modernize(graph: Specializer, node: onnx.NodeProto) -> str | None:
    """Bring a node of the model to the walk's opset, in place.

    Returns:
        None, or the name of the value that replaces the node's result.
    """
    before, change = _CHANGES.get(node.op_type, (0, _unchanged))
    return change(graph, node) if graph.source_opset < before else None


def _unchanged(graph: Specializer, node: onnx.NodeProto) -> None:
    """Nothing to do."""


def _attribute_to_operand(name: str, position: int) -> _Modernize:
    """Integers that were an attribute are an operand."""

    def change(graph: Specializer, node: onnx.NodeProto) -> None:
        given = attribute(node, name)
        if given is None:
            return
        _set_attributes(node, without(node, name))
        node.input.extend([""] * (position - len(node.input)))
        node.input.append(graph.const(given))

    return change


def _softmax(graph: Specializer, node: onnx.NodeProto) -> str | None:
    """Before opset 13 these normalise over all dimensions from the axis on, as one; the default axis was 1."""
    shape = graph.type(node.input[0]).shape
    axis = attribute(node, "axis", 1)
    axis += len(shape) if axis < 0 else 0
    if axis == len(shape) - 1:
        _set_attributes(node, {"axis": axis})
        return None
    flat = build.reshape(graph, node.input[0], [prod(shape[:axis]), prod(shape[axis:])])
    return build.reshape(graph, graph.emit(node.op_type, [flat], axis=1), shape)


def _split(graph: Specializer, node: onnx.NodeProto) -> None:
    """Sizes are an operand since opset 13; equal parts have to be counted since 18."""
    if graph.source_opset < 13:
        _attribute_to_operand("split", 1)(graph, node)
    if len(node.input) < 2 or not node.input[1]:
        _set_attributes(node, {**without(node), "num_outputs": len(node.output)})


def _dropout(graph: Specializer, node: onnx.NodeProto) -> None:
    """The ratio is an operand since opset 12."""
    _set_attributes(node, without(node, "ratio"))


def _resize(graph: Specializer, node: onnx.NodeProto) -> None:
    """Before opset 13 no operand could be omitted, and exporters gave empty ones."""
    for position, name in enumerate(node.input):
        if position and name and (value := graph.constant(name)) is not None and value.size == 0:
            node.input[position] = ""


def _grid_sample(graph: Specializer, node: onnx.NodeProto) -> None:
    """The modes lost their "bi" at opset 20."""
    mode = str(attribute(node, "mode", "bilinear"))
    _set_attributes(node, {**without(node), "mode": mode.removeprefix("bi")})


def _dft(graph: Specializer, node: onnx.NodeProto) -> None:
    """The axis is an operand since opset 20, and its default another."""
    axis = attribute(node, "axis", 1)
    _set_attributes(node, without(node, "axis"))
    node.input.extend([""] * (2 - len(node.input)))
    node.input.append(graph.const(axis))


def _batch_normalization(graph: Specializer, node: onnx.NodeProto) -> None:
    """Before opset 14 asking for the statistics meant training."""
    if any(node.output[1:]):
        raise Refuse("batch normalization in training mode is not supported")
    del node.output[1:]


def _roi_align(graph: Specializer, node: onnx.NodeProto) -> None:
    """The default became `half_pixel` at opset 16."""
    _set_attributes(node, {**without(node), "coordinate_transformation_mode": "output_half_pixel"})


def _group_normalization(graph: Specializer, node: onnx.NodeProto) -> str:
    """Before opset 21 scale and bias are per group: an instance normalisation of the groups."""
    shape = graph.type(node.input[0]).shape
    groups = attribute(node, "num_groups")
    if not groups or len(shape) < 2 or shape[1] % groups:
        raise Refuse("num_groups does not divide the channels")
    if any(graph.type(name).shape != (groups,) for name in node.input[1:]):
        raise Refuse("before opset 21 scale and bias must have one element a group")
    grouped = build.reshape(graph, node.input[0], [shape[0], groups, prod(shape[1:]) // groups])
    operands = [grouped, *node.input[1:]]
    result = graph.emit("InstanceNormalization", operands, epsilon=attribute(node, "epsilon", 1e-5))
    return build.reshape(graph, result, shape)


def _set_attributes(node: onnx.NodeProto, attributes: dict[str, object]) -> None:
    del node.attribute[:]
    node.attribute.extend(onnx.helper.make_attribute(name, value) for name, value in attributes.items())


_AXES = _attribute_to_operand("axes", 1)

# Operator -> the first opset that has the new form, and the change.
_CHANGES: dict[str, tuple[int, _Modernize]] = {
    "BatchNormalization": (14, _batch_normalization),
    "DFT": (20, _dft),
    "Dropout": (12, _dropout),
    "GridSample": (20, _grid_sample),
    "GroupNormalization": (21, _group_normalization),
    "Hardmax": (13, _softmax),
    "LogSoftmax": (13, _softmax),
    "ReduceL1": (18, _AXES),
    "ReduceL2": (18, _AXES),
    "ReduceLogSum": (18, _AXES),
    "ReduceLogSumExp": (18, _AXES),
    "ReduceMax": (18, _AXES),
    "ReduceMean": (18, _AXES),
    "ReduceMin": (18, _AXES),
    "ReduceProd": (18, _AXES),
    "ReduceSum": (13, _AXES),
    "ReduceSumSquare": (18, _AXES),
    "Resize": (13, _resize),
    "RoiAlign": (16, _roi_align),
    "Softmax": (13, _softmax),
    "Split": (18, _split),
    "Squeeze": (13, _AXES),
    "Unsqueeze": (13, _AXES),
}
