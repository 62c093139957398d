"""Operators that move elements without computing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import onnx

from smartmem_mlir.ingress.onnx_model.attributes import attribute
from smartmem_mlir.ingress.onnx_model.rewrites import build
from smartmem_mlir.ingress.onnx_model.rewrites.registry import rewrite
from smartmem_mlir.ingress.onnx_model.tensors import Array

if TYPE_CHECKING:
    from smartmem_mlir.ingress.onnx_model.specialize import Specializer


@rewrite("Reshape")
def reshape(graph: Specializer, node: onnx.NodeProto) -> str | None:
    """The inferred shape as a literal where the model's has 0 or -1: torch-mlir crashes on some of them."""
    shape = graph.constant(node.input[1])
    if shape is not None and (shape > 0).all():
        return None
    return build.reshape(graph, node.input[0], graph.type(node.output[0]).shape)


@rewrite("DepthToSpace", "SpaceToDepth")
def depth_space(graph: Specializer, node: onnx.NodeProto) -> str:
    """Reshape, transpose, reshape: torch-mlir gets the CRD order wrong, and this is what the operator is."""
    batch, channels, height, width = graph.type(node.input[0]).shape
    r = attribute(node, "blocksize")
    column_row_depth = attribute(node, "mode", "DCR") == "CRD"
    if node.op_type == "DepthToSpace":
        depth = channels // (r * r)
        if column_row_depth:
            blocks = build.reshape(graph, node.input[0], [batch, depth, r, r, height, width])
            moved = build.transpose(graph, blocks, [0, 1, 4, 2, 5, 3])
        else:
            blocks = build.reshape(graph, node.input[0], [batch, r, r, depth, height, width])
            moved = build.transpose(graph, blocks, [0, 3, 4, 1, 5, 2])
        return build.reshape(graph, moved, [batch, depth, height * r, width * r])
    blocks = build.reshape(graph, node.input[0], [batch, channels, height // r, r, width // r, r])
    moved = build.transpose(graph, blocks, [0, 1, 3, 5, 2, 4] if column_row_depth else [0, 3, 5, 1, 2, 4])
    return build.reshape(graph, moved, [batch, channels * r * r, height // r, width // r])


@rewrite("Slice")
def slice_(graph: Specializer, node: onnx.NodeProto) -> str | None:
    """Axes with a negative step become gathers of constant indices: torch-mlir emits negative offsets."""
    shape = graph.type(node.input[0]).shape
    operands = [build.known(graph, node, i) for i in range(1, len(node.input))]
    starts, ends = operands[0], operands[1]
    assert starts is not None
    assert ends is not None
    axes = operands[2] if len(operands) > 2 and operands[2] is not None else np.arange(starts.size)
    steps = operands[3] if len(operands) > 3 and operands[3] is not None else np.ones(starts.size, np.int64)
    if (steps > 0).all():
        return None
    # A gather from a slice with steps does not compile in IREE 3.13: only slices without steps stay slices.
    plain = steps == 1
    value = node.input[0]
    if plain.any():
        value = graph.emit("Slice", [value, *(graph.const(v[plain]) for v in (starts, ends, axes))])
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        if step != 1:
            indices = range(shape[axis])[int(start) : int(end) : int(step)]
            value = build.take(graph, value, list(indices), int(axis) % len(shape))
    return value


@rewrite("ReverseSequence")
def reverse_sequence(graph: Specializer, node: onnx.NodeProto) -> str:
    """Read step `length - 1 - t` for steps before each row's length; torch-mlir's form does not compile."""
    shape = graph.type(node.input[0]).shape
    time, batch = attribute(node, "time_axis", 0), attribute(node, "batch_axis", 1)
    steps = graph.const(np.arange(shape[time]).reshape([-1 if i == time else 1 for i in range(len(shape))]))
    lengths = build.reshape(graph, node.input[1], [-1 if i == batch else 1 for i in range(len(shape))])
    lengths = build.cast(graph, lengths, onnx.TensorProto.INT64)
    mirrored = graph.emit("Sub", [graph.emit("Sub", [lengths, graph.const(1)]), steps])
    indices = graph.emit("Where", [graph.emit("Less", [steps, lengths]), mirrored, steps])
    return str(graph.emit("GatherElements", [node.input[0], build.expand(graph, indices, shape)], axis=time))


@rewrite("Compress")
def compress(graph: Specializer, node: onnx.NodeProto) -> str:
    """A gather of the places where a constant condition holds."""
    condition = build.known(graph, node, 1)
    assert condition is not None
    value, axis = node.input[0], attribute(node, "axis")
    if axis is None:
        value, axis = build.reshape(graph, value, [graph.type(value).elements]), 0
    return build.take(graph, value, np.flatnonzero(condition), axis)


@rewrite("Pad")
def pad(graph: Specializer, node: onnx.NodeProto) -> str | None:
    """Padding by the tensor's own values as a gather along each axis: torch-mlir hangs on `wrap`, and a gather by a
    constant is a view in any case. Constant padding without negative amounts."""
    mode = attribute(node, "mode", "constant")
    amounts = build.known(graph, node, 1)
    axes = build.known(graph, node, 3)
    shape = graph.type(node.input[0]).shape
    assert amounts is not None
    places = [int(a) % len(shape) for a in axes] if axes is not None else list(range(len(shape)))
    value = node.input[0]
    if mode == "constant":
        if (amounts >= 0).all():
            return None
        # IREE does not take negative padding, which crops: first what it crops, then what it pads.
        for i, axis in enumerate(places):
            start, end = -min(int(amounts[i]), 0), shape[axis] + min(int(amounts[i + len(places)]), 0)
            value = build.cut(graph, value, axis, start, end)
        return str(graph.emit("Pad", [value, graph.const(np.maximum(amounts, 0)), *node.input[2:]]))
    for i, axis in enumerate(places):
        before, after = int(amounts[i]), int(amounts[i + len(places)])
        if before or after:
            value = build.take(graph, value, _padded_indices(shape[axis], before, after, mode), axis)
    return value


def _padded_indices(size: int, before: int, after: int, mode: str) -> Array:
    """The source index of each element of a padded axis; a negative amount crops."""
    places = np.arange(-before, size + after)
    if mode == "edge":
        return np.clip(places, 0, size - 1)
    if mode == "wrap":
        return places % size
    period = max(2 * (size - 1), 1)
    folded = places % period
    return np.where(folded < size, folded, period - folded)
