"""A node's attributes as Python values."""

from __future__ import annotations

from typing import Any

import onnx


def attributes_of(node: onnx.NodeProto) -> dict[str, Any]:
    """Attribute values by name: int, float, str, TensorProto, GraphProto, or lists of them."""
    return {a.name: _decode(onnx.helper.get_attribute_value(a)) for a in node.attribute}


def attribute(node: onnx.NodeProto, name: str, default: Any = None) -> Any:
    """One attribute's value, or `default` if the node does not have it."""
    for a in node.attribute:
        if a.name == name:
            return _decode(onnx.helper.get_attribute_value(a))
    return default


def without(node: onnx.NodeProto, *names: str) -> dict[str, Any]:
    """The attributes except the named ones, to copy a node with changes."""
    return {name: value for name, value in attributes_of(node).items() if name not in names}


def _decode(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    if isinstance(value, list) and value and isinstance(value[0], bytes):
        return [v.decode("utf-8", errors="replace") for v in value]
    if not isinstance(value, (int, float, str, list)) and hasattr(value, "__len__") and not hasattr(value, "name"):
        return list(value)
    return value
