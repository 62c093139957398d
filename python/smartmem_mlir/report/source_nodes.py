"""The data-movement operators of an ONNX file, by the names that its nodes have."""

from __future__ import annotations

from pathlib import Path

from smartmem_mlir.report.explanation import MOVEMENT_OPERATORS


def movement_nodes(path: Path) -> list[tuple[str, str]]:
    """Name and operator of each data-movement node, in the model's order; local functions are inlined.

    Raises:
        InvalidModelError: The file is not a model.
    """
    from smartmem_mlir.ingress.onnx_model.reader import read_file

    nodes = read_file(path).graph.node
    return [
        (node.name or next((name for name in node.output if name), ""), node.op_type)
        for node in nodes
        if node.op_type in MOVEMENT_OPERATORS and node.domain in ("", "ai.onnx")
    ]
