"""GELU put back together: older opsets spell it x * 0.5 * (1 + erf(x / sqrt(2))), while converters know `gelu`."""

from __future__ import annotations

from collections.abc import Mapping
from math import isclose, sqrt
from typing import Any

import numpy as np
import onnx

Arrays = Mapping[str, np.ndarray[Any, Any]]


def fuse_gelu(graph: onnx.GraphProto, constants: Arrays) -> list[onnx.NodeProto]:
    """The graph's nodes, in order, with each spelled-out GELU as one `Gelu` node.

    Args:
        graph: The graph, left alone.
        constants: Its constants by name.
    """
    producer = {name: node for node in graph.node for name in node.output}
    uses: dict[str, list[onnx.NodeProto]] = {}
    for node in graph.node:
        for name in node.input:
            uses.setdefault(name, []).append(node)
    outputs = {value.name for value in graph.output}

    def only_user(name: str) -> onnx.NodeProto | None:
        users = uses.get(name, [])
        return users[0] if len(users) == 1 and name not in outputs else None

    def other(node: onnx.NodeProto | None, kind: str, name: str) -> str | None:
        """The other operand of a binary node of this kind."""
        if node is None or node.op_type != kind or name not in node.input:
            return None
        return node.input[1] if node.input[0] == name else node.input[0]

    def is_constant(name: str | None, value: float) -> bool:
        found = constants.get(name or "")
        return found is not None and found.size == 1 and isclose(float(found.reshape(-1)[0]), value, rel_tol=1e-3)

    def scaled(name: str | None, factor: float) -> str | None:
        """x, if the value is x * factor."""
        node = producer.get(name or "")
        if node is None or node.op_type not in ("Mul", "Div"):
            return None
        wanted = 1 / factor if node.op_type == "Div" else factor
        if is_constant(node.input[1], wanted):
            return str(node.input[0])
        return str(node.input[1]) if node.op_type == "Mul" and is_constant(node.input[0], wanted) else None

    def match(erf: onnx.NodeProto) -> tuple[str, str] | None:
        """Input and output of the GELU around an `Erf`."""
        x = scaled(erf.input[0], sqrt(0.5))
        plus_one = only_user(erf.output[0])
        if x is None or not is_constant(other(plus_one, "Add", erf.output[0]), 1.0):
            return None
        assert plus_one is not None
        product = only_user(plus_one.output[0])
        factor = other(product, "Mul", plus_one.output[0])
        if product is None or factor is None:
            return None
        if scaled(factor, 0.5) == x:
            return x, product.output[0]
        last = only_user(product.output[0])
        rest = other(last, "Mul", product.output[0])
        if last is not None and ((factor == x and is_constant(rest, 0.5)) or (is_constant(factor, 0.5) and rest == x)):
            return x, last.output[0]
        return None

    found = (match(node) for node in graph.node if node.op_type == "Erf")
    gelus = {result: x for x, result in filter(None, found)}
    return [
        onnx.helper.make_node("Gelu", [gelus[node.output[0]]], list(node.output)) if node.output[0] in gelus else node
        for node in graph.node
    ]
