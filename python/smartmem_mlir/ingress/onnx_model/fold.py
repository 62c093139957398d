"""Evaluate nodes whose operands are known."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx

from smartmem_mlir.errors import InvalidModelError
from smartmem_mlir.ingress.onnx_model.attributes import attribute
from smartmem_mlir.ingress.onnx_model.reader import inline_values
from smartmem_mlir.ingress.onnx_model.structure import node_label
from smartmem_mlir.ingress.onnx_model.tensors import Array, TensorType, check_dims, numpy_type, type_of

if TYPE_CHECKING:
    from smartmem_mlir.ingress.onnx_model.specialize import Specializer

MAX_FOLDED_ELEMENTS = 1 << 22
"""Larger results are computed when the model runs: folding must not blow up the module or our memory."""

_VALUE_SHAPED = frozenset({"Compress", "NonMaxSuppression", "NonZero", "Unique"})
"""Operators whose result's shape depends on values, which inference does not look at."""


def fold(graph: Specializer, node: onnx.NodeProto, types: Mapping[str, TensorType]) -> list[Array] | None:
    """The values of a node's outputs, or None if they depend on inputs or weights.

    Args:
        graph: Knows the operands.
        node: The node.
        types: The inferred types of its outputs.
    """
    if node.op_type == "Shape":
        shape = graph.type(node.input[0]).shape
        return [np.asarray(shape[attribute(node, "start", 0) : attribute(node, "end")], dtype=np.int64)]
    if node.op_type == "Size":
        return [np.asarray(graph.type(node.input[0]).elements, dtype=np.int64)]
    if types and all(t.elements == 0 for t in types.values()):
        return [_empty(types[name]) if name else np.empty(0) for name in node.output]
    operands = [graph.constant(name) for name in node.input]
    if any(value is None and name for value, name in zip(operands, node.input, strict=True)):
        return None
    if sum(t.elements for t in types.values()) > MAX_FOLDED_ELEMENTS:
        return None
    if node.op_type == "Range":
        return _range(*operands)
    if not types and node.op_type not in _VALUE_SHAPED:
        return None
    results = evaluate(node, graph.opset, operands)
    if results is None or any(
        types and type_of(value) != types[name] for value, name in zip(results, node.output, strict=False) if name
    ):
        return None
    return results


def _range(*operands: Array | None) -> list[Array] | None:
    """Inference knows the length of a Range only for some element types and ranks of its operands."""
    start, limit, delta = (value.item() if value is not None and value.size == 1 else None for value in operands)
    if start is None or limit is None or not delta:
        return None
    count = max(math.ceil((limit - start) / delta), 0)
    if count > MAX_FOLDED_ELEMENTS:
        return None
    dtype = next(value.dtype for value in operands if value is not None)
    return [(start + delta * np.arange(count)).astype(dtype)]


def _empty(type_: TensorType) -> Array:
    return np.empty(type_.shape, onnx.helper.tensor_dtype_to_np_dtype(type_.element_type))


def constant_value(graph: Specializer, node: onnx.NodeProto) -> Array:
    """The value of a Constant node, whichever of its attributes holds it.

    Raises:
        InvalidModelError: It holds no valid numeric value.
    """
    for a in node.attribute:
        if a.name == "value":
            label = node_label(node)
            checked = check_dims(a.t.dims, a.t.data_type, file=graph.file, node=label)
            numpy_type(a.t.data_type, file=graph.file, node=label)
            return inline_values(a.t, checked, graph.file)
        if a.name in ("value_float", "value_floats"):
            return np.asarray(onnx.helper.get_attribute_value(a), dtype=np.float32)
        if a.name in ("value_int", "value_ints"):
            return np.asarray(onnx.helper.get_attribute_value(a), dtype=np.int64)
    raise InvalidModelError("the constant has no numeric value", file=graph.file, node=node_label(node))


def evaluate(node: onnx.NodeProto, opset: int, operands: list[Array | None]) -> list[Array] | None:
    """Run ONNX's reference implementation; None if it has none, or it fails, for this node."""
    from onnx.reference import ReferenceEvaluator

    names = [f"operand{i}" if name else "" for i, name in enumerate(node.input)]
    anonymous = onnx.NodeProto()
    anonymous.CopyFrom(node)
    anonymous.input[:] = names
    feeds: dict[str, Any] = {n: v for n, v in zip(names, operands, strict=True) if n}
    graph = onnx.helper.make_graph(
        [anonymous],
        "fold",
        [
            onnx.helper.make_tensor_value_info(n, onnx.helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
            for n, v in feeds.items()
        ],
        [onnx.ValueInfoProto(name=name) for name in node.output if name],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)])
    try:
        with np.errstate(all="ignore"):
            values = ReferenceEvaluator(model).run(None, feeds)
    except Exception:
        # The evaluator is an optimisation here: whatever it cannot do is left for the compiled model, and a
        # node that is really wrong fails there with its own message.
        return None
    results = iter(values)
    folded: list[Array] = [np.asarray(next(results)) if name else np.empty(0) for name in node.output]
    return folded
