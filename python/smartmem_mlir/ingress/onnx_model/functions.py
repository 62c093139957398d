"""Operators that ONNX defines by others: expand them by that definition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import onnx

from smartmem_mlir.ingress.onnx_model import structure
from smartmem_mlir.ingress.onnx_model.control_flow import walk_inlined
from smartmem_mlir.ingress.onnx_model.infer import schema_of

if TYPE_CHECKING:
    from smartmem_mlir.ingress.onnx_model.specialize import Specializer

EXPANDED = frozenset(
    {
        "AffineGrid",
        "Attention",
        "CausalConvWithState",
        "CenterCropPad",
        "DynamicQuantizeLinear",
        "GroupNormalization",
        "LinearAttention",
        "MeanVarianceNormalization",
        "NegativeLogLikelihoodLoss",
        "RMSNormalization",
        "RotaryEmbedding",
        "SoftmaxCrossEntropyLoss",
        "SwiGLU",
        "Swish",
    }
)
"""Operators of the default domain that torch-mlir lacks or gets wrong and ONNX's own definition gets right."""


def expand(graph: Specializer, node: onnx.NodeProto) -> list[str] | None:
    """Replace a node by ONNX's definition of its operator.

    Returns:
        The names of its results, or None if the operator is not in `EXPANDED`.
    """
    if node.op_type not in EXPANDED:
        return None
    return expand_definition(graph, node)


def expand_definition(graph: Specializer, node: onnx.NodeProto) -> list[str] | None:
    """Replace a node by ONNX's definition of its operator, or return None if it has none at the model's opset."""
    opset = graph.opset
    schema = schema_of(node, opset)
    assert schema is not None
    body = _definition(graph, node, schema, opset)
    if body is None:
        return None
    given = {a.name: a for a in node.attribute}
    for name, declared in schema.attributes.items():
        if name not in given and declared.default_value.name:
            given[name] = declared.default_value
    nodes = [_bind_attributes(inner, given) for inner in body.node]
    rename = dict.fromkeys(body.input, "")
    rename.update(zip(body.input, node.input, strict=False))
    wanted = [inner if outer else "" for inner, outer in zip(body.output, node.output, strict=False)]
    walk_inlined(graph, structure.live_nodes(nodes, set(filter(None, wanted))), rename, from_model=False)
    return [graph.resolve(rename[name]) if name else "" for name in wanted]


def _definition(graph: Specializer, node: onnx.NodeProto, schema: Any, opset: int) -> onnx.FunctionProto | None:
    plain = max((v for v in schema.function_opset_versions if v <= opset), default=0)
    dependent = max((v for v in schema.context_dependent_function_opset_versions if v <= opset), default=0)
    if dependent > plain or (dependent and not plain):
        types = [graph.type(name).proto().SerializeToString() if name else b"" for name in node.input]
        text = schema.get_context_dependent_function_with_opset_version(dependent, node.SerializeToString(), types)
    elif plain:
        text = schema.get_function_with_opset_version(plain)
    else:
        return None
    return onnx.FunctionProto.FromString(text) if text else None


def _bind_attributes(node: onnx.NodeProto, given: dict[str, onnx.AttributeProto]) -> onnx.NodeProto:
    bound = onnx.NodeProto()
    bound.CopyFrom(node)
    del bound.attribute[:]
    for a in node.attribute:
        if not a.ref_attr_name:
            bound.attribute.append(a)
        elif a.ref_attr_name in given:
            copied = onnx.AttributeProto()
            copied.CopyFrom(given[a.ref_attr_name])
            copied.name = a.name
            bound.attribute.append(copied)
    return bound
