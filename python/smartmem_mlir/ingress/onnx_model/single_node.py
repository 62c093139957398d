"""Models of one node each, to find out which nodes an importer rejects."""

from __future__ import annotations

from dataclasses import dataclass, field

import onnx


@dataclass(frozen=True)
class NodeGroup:
    """Nodes that differ only in the names of their values, and a model of one of them."""

    model: onnx.ModelProto
    nodes: list[onnx.NodeProto] = field(default_factory=list)


def distinct_nodes(model: onnx.ModelProto) -> list[NodeGroup]:
    """Group a model's nodes by operator, attributes, operand types and constant operands.

    Args:
        model: A model with types for all values, as `emit_model` makes it.
    """
    graph = model.graph
    types = {v.name: v.type for v in (*graph.input, *graph.output, *graph.value_info)}
    literals = {t.name: t for t in graph.initializer}
    groups: dict[bytes, NodeGroup] = {}
    for node in graph.node:
        single = _single_node_model(node, types, literals, model)
        key = single.SerializeToString(deterministic=True)
        groups.setdefault(key, NodeGroup(single)).nodes.append(node)
    return list(groups.values())


def _single_node_model(
    node: onnx.NodeProto,
    types: dict[str, onnx.TypeProto],
    literals: dict[str, onnx.TensorProto],
    model: onnx.ModelProto,
) -> onnx.ModelProto:
    renamed = onnx.NodeProto()
    renamed.CopyFrom(node)
    renamed.name = ""
    inputs: dict[str, onnx.ValueInfoProto] = {}
    initializers: list[onnx.TensorProto] = []
    names: dict[str, str] = {}
    for name in filter(None, node.input):
        if name in names:
            continue
        names[name] = f"operand{len(names)}"
        if name in literals:
            copied = onnx.TensorProto()
            copied.CopyFrom(literals[name])
            copied.name = names[name]
            initializers.append(copied)
        else:
            inputs[name] = onnx.helper.make_value_info(names[name], types[name])
    renamed.input[:] = [names[name] if name else "" for name in node.input]
    outputs = [f"result{i}" if name else "" for i, name in enumerate(node.output)]
    renamed.output[:] = outputs
    values = [
        onnx.helper.make_value_info(new, types[old]) for new, old in zip(outputs, node.output, strict=True) if old
    ]
    graph = onnx.helper.make_graph([renamed], "main", list(inputs.values()), values, initializers)
    return onnx.helper.make_model(graph, opset_imports=list(model.opset_import), ir_version=model.ir_version)
