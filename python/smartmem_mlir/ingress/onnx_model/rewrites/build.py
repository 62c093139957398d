"""Short ways for rewrites to emit nodes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import onnx

from smartmem_mlir.ingress.onnx_model.rewrites.registry import Refuse
from smartmem_mlir.ingress.onnx_model.tensors import Array

if TYPE_CHECKING:
    from smartmem_mlir.ingress.onnx_model.specialize import Specializer

RUNTIME_OPERAND = "operand {} is only known when the model runs"


def reshape(graph: Specializer, value: str, shape: Sequence[int]) -> str:
    """The value in another shape, given literally."""
    if graph.type(value).shape == tuple(shape):
        return value
    return str(graph.emit("Reshape", [value, graph.const(shape)]))


def transpose(graph: Specializer, value: str, permutation: Sequence[int]) -> str:
    """The value with its dimensions permuted: result dimension i is dimension `permutation[i]`."""
    if list(permutation) == list(range(len(permutation))):
        return value
    return str(graph.emit("Transpose", [value], perm=list(permutation)))


def take(graph: Specializer, value: str, indices: Sequence[int] | Array, axis: int) -> str:
    """The entries of one axis at constant places."""
    return str(graph.emit("Gather", [value, graph.const(np.asarray(indices))], axis=axis))


def cut(graph: Specializer, value: str, axis: int, start: int, end: int) -> str:
    """The range `start` to `end` of one axis."""
    if start == 0 and end == graph.type(value).shape[axis]:
        return value
    operands = [graph.const([bound]) for bound in (start, end, axis)]
    return str(graph.emit("Slice", [value, *operands]))


def concat(graph: Specializer, values: Sequence[str], axis: int) -> str:
    """The values one after the other."""
    return values[0] if len(values) == 1 else str(graph.emit("Concat", values, axis=axis))


def expand(graph: Specializer, value: str, shape: Sequence[int]) -> str:
    """The value broadcast to a shape."""
    if graph.type(value).shape == tuple(shape):
        return value
    return str(graph.emit("Expand", [value, graph.const(shape)]))


def cast(graph: Specializer, value: str, element_type: int) -> str:
    """The value in another element type (of `onnx.TensorProto.DataType`)."""
    if graph.type(value).element_type == element_type:
        return value
    return str(graph.emit("Cast", [value], to=element_type))


def reduce(graph: Specializer, operator: str, value: str, axes: Sequence[int], *, keepdims: bool = False) -> str:
    """A reduction over some axes."""
    return str(graph.emit(operator, [value, graph.const(axes)], keepdims=int(keepdims)))


def scalar(graph: Specializer, number: float, like: str) -> str:
    """A constant of rank 0 with the element type of a value; an infinity is the extreme of an integer type."""
    dtype = onnx.helper.tensor_dtype_to_np_dtype(graph.type(like).element_type)
    if math.isinf(number) and dtype.kind in "iu":
        number = np.iinfo(dtype).max if number > 0 else np.iinfo(dtype).min
    return graph.const(number, dtype)


def array_like(graph: Specializer, values: Array, like: str) -> str:
    """A constant with the element type of a value."""
    return graph.const(values, onnx.helper.tensor_dtype_to_np_dtype(graph.type(like).element_type))


def known(graph: Specializer, node: onnx.NodeProto, position: int) -> Array | None:
    """The value of an operand that must be known at import; None if it is omitted.

    Raises:
        Refuse: It is not known.
    """
    if position >= len(node.input) or not node.input[position]:
        return None
    value = graph.constant(node.input[position])
    if value is None and (weight := graph.weight(node.input[position])) is not None:
        value = weight.load()
    if value is None:
        raise Refuse(RUNTIME_OPERAND.format(position))
    return value
