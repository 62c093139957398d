"""What cannot be imported, collected over a whole model before it is reported."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import onnx

from smartmem_mlir.errors import UnsupportedModelError
from smartmem_mlir.ingress.onnx_model.infer import schema_of
from smartmem_mlir.ingress.onnx_model.structure import node_label

if TYPE_CHECKING:
    pass

MAX_NODES_LISTED = 8
"""Nodes named per operator and reason; the count is always that of all."""


@dataclass
class Refusals:
    """Nodes that are not supported, by operator and reason."""

    file: Path | None
    _nodes: dict[tuple[str, str], list[str]] = field(default_factory=lambda: defaultdict(list))

    def add(self, node: onnx.NodeProto, reason: str) -> None:
        """Note one node."""
        operator = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
        self._nodes[operator, reason].append(node.name or node_label(node))

    def raise_if_any(self) -> None:
        """Report everything that was noted.

        Raises:
            UnsupportedModelError: Something was noted.
        """
        if not self._nodes:
            return
        parts = []
        for (operator, reason), nodes in sorted(self._nodes.items()):
            named = ", ".join(dict.fromkeys(nodes[:MAX_NODES_LISTED])) + (
                ", ..." if len(nodes) > MAX_NODES_LISTED else ""
            )
            parts.append(f"{operator} x{len(nodes)} ({named}): {reason}")
        raise UnsupportedModelError(
            "unsupported operators: " + "; ".join(parts),
            hint="docs/onnx-operators.md lists what is supported",
            file=self.file,
        )


_RANDOM = "its results are random, so that no reference could verify them"

_NOT_LOWERED = "torch-mlir does not lower it, and nothing stands for it yet"

REFUSED = {
    "BitCast": _NOT_LOWERED,
    "DeformConv": _NOT_LOWERED,
    "ImageDecoder": _NOT_LOWERED,
    "MaxUnpool": _NOT_LOWERED,
    "RoiAlign": _NOT_LOWERED,
    "TensorScatter": _NOT_LOWERED,
    "Bernoulli": _RANDOM,
    "Multinomial": _RANDOM,
    "RandomNormal": _RANDOM,
    "RandomNormalLike": _RANDOM,
    "RandomUniform": _RANDOM,
    "RandomUniformLike": _RANDOM,
}
"""Operators of the default domain that are refused, with the reason."""


DEPRECATED_BUT_SUPPORTED = frozenset({"GroupNormalization"})
"""Operators whose deprecated versions have a newer one that can stand for them (`modernize`)."""


def refusal_of(node: onnx.NodeProto, opset: int) -> str | None:
    """Why a node cannot be imported, as far as its operator alone decides it; None if it may be."""
    if node.domain:
        return "the operator's domain is not part of ONNX's core"
    schema = schema_of(node, opset)
    if schema is None:
        return f"opset {opset} has no such operator"
    if schema.deprecated and node.op_type not in DEPRECATED_BUT_SUPPORTED:
        return f"the operator is deprecated in opset {opset}"
    return REFUSED.get(node.op_type)
