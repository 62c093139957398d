"""Static types of a node's outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx

from smartmem_mlir.errors import InvalidModelError, first_line
from smartmem_mlir.ingress.onnx_model.structure import node_label
from smartmem_mlir.ingress.onnx_model.tensors import TensorType, check_dims

if TYPE_CHECKING:
    from smartmem_mlir.ingress.onnx_model.specialize import Specializer

MAX_SHAPE_OPERAND = 1024
"""Constants with more elements are not shapes, axes or sizes, and inference does not need their values."""


def schema_of(node: onnx.NodeProto, opset: int) -> onnx.defs.OpSchema | None:
    """The node's operator in the default domain as of an opset, or None if there is none."""
    try:
        return onnx.defs.get_schema(node.op_type, opset, node.domain)
    except onnx.defs.SchemaError:
        return None


def check_node(graph: Specializer, node: onnx.NodeProto, opset: int) -> None:
    """Check a node of the default domain against its operator's schema: attributes and number of operands.

    Raises:
        InvalidModelError: It does not fit.
    """
    context = onnx.checker.C.CheckerContext()
    context.ir_version = graph.ir_version
    context.opset_imports = {"": opset}
    try:
        onnx.checker.check_node(node, context)
    except onnx.checker.ValidationError as error:
        raise InvalidModelError(first_line(error), file=graph.file, node=node_label(node)) from error


def infer(graph: Specializer, node: onnx.NodeProto) -> dict[str, TensorType]:
    """Infer the types of a node's outputs from the types, and where known the values, of its operands.

    Raises:
        InvalidModelError: The operands do not fit the operator, or a result would be absurdly large.
        Refuse: A result's shape is not known before the model runs, or a result is not a tensor.
    """
    from smartmem_mlir.ingress.onnx_model.rewrites import Refuse

    opset = graph.opset
    schema = schema_of(node, opset)
    assert schema is not None, "unknown operators are refused before their types are inferred"
    operands = [name for name in node.input if name]
    types = {name: graph.type(name).proto() for name in operands}
    data = {
        name: onnx.numpy_helper.from_array(value, name)
        for name in operands
        if (value := graph.constant(name)) is not None and value.size <= MAX_SHAPE_OPERAND
    }
    opsets = [onnx.helper.make_opsetid("", opset)]
    if node.op_type == "STFT" and not any(a.name == "onesided" for a in node.attribute):
        # The operator's default is 1, but its inference takes an absent attribute for 0.
        node.attribute.append(onnx.helper.make_attribute("onesided", 1))
    try:
        protos = onnx.shape_inference.infer_node_outputs(schema, node, types, data, opset_imports=opsets)
    except Exception as error:  # InferenceError, or a bare RuntimeError for some operators
        raise InvalidModelError(
            f"its operands do not fit the operator: {first_line(error)}", file=graph.file, node=node_label(node)
        ) from error
    found: dict[str, TensorType] = {}
    for name in filter(None, node.output):
        proto = protos.get(name)
        if proto is None or not proto.HasField("tensor_type"):
            kind = proto.WhichOneof("value") if proto is not None else None
            raise Refuse(f"its result is a {kind}, not a tensor" if kind else "its result's type is unknown")
        if not proto.tensor_type.HasField("shape") or any(
            not d.HasField("dim_value") for d in proto.tensor_type.shape.dim
        ):
            raise Refuse("its result's shape depends on values that are only known when the model runs")
        dims = [d.dim_value for d in proto.tensor_type.shape.dim]
        found[name] = check_dims(dims, proto.tensor_type.elem_type, file=graph.file, node=node_label(node))
    return found
