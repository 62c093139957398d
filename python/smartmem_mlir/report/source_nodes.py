"""The data-movement operators of an ONNX file by name, and where the model's source has them."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from smartmem_mlir.report.explanation import MOVEMENT_OPERATORS

if TYPE_CHECKING:
    import onnx

_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>\S+)')


@dataclass(frozen=True)
class SourceNode:
    """A data-movement operator.

    Args:
        name: The node's name, or that of its first output.
        operator: Its kind.
        location: Where it comes from: the module and the line of the program that was exported, as far as PyTorch's
            exporter recorded it, else the node's place in the graph.
    """

    name: str
    operator: str
    location: str


def movement_nodes(path: Path) -> list[SourceNode]:
    """The data-movement nodes, in the model's order; local functions are inlined.

    Raises:
        InvalidModelError: The file is not a model.
    """
    from smartmem_mlir.ingress.onnx_model.reader import read_file

    nodes = read_file(path).graph.node
    return [
        SourceNode(node.name or next((name for name in node.output if name), ""), node.op_type, _location(node, place))
        for place, node in enumerate(nodes)
        if node.op_type in MOVEMENT_OPERATORS and node.domain in ("", "ai.onnx")
    ]


def _location(node: onnx.NodeProto, place: int) -> str:
    known = {entry.key: entry.value for entry in node.metadata_props}
    parts = [_scope(known.get("pkg.torch.onnx.name_scopes", "")), _line(known.get("pkg.torch.onnx.stack_trace", ""))]
    return ", ".join(part for part in parts if part) or f"node {place} of the graph"


def _scope(text: str) -> str:
    """The innermost module's path in a list of scopes whose last entry is the operation."""
    try:
        scopes = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return ""
    return str(scopes[-2]) if isinstance(scopes, list) and len(scopes) > 1 else ""


def _line(trace: str) -> str:
    """The innermost frame of a stack trace, its file without folders."""
    frames = list(_FRAME.finditer(trace))
    if not frames:
        return ""
    last = frames[-1]
    return f"{PurePosixPath(last['file'].replace(chr(92), '/')).name}:{last['line']} in {last['function']}"
