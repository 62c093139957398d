"""The adapter. Model Explorer imports this module by the name of its package and finds the class by its base."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any, ClassVar

from model_explorer import Adapter, AdapterMetadata, ModelExplorerGraphs
from model_explorer import graph_builder as builder

from smartmem_mlir.errors import InvalidModelError

_STORAGE_COLORS = {"buffer": "#8250df", "texel_buffer": "#0f8a8a"}
_IMAGE_COLOR = "#c2255c"
_MOVES = frozenset({"smartmem.view", "smartmem.convert_layout", "linalg.transpose", "tensor.pad"})
"""Operations that only move elements; a rearranging `tensor.expand_shape` moves none."""
_MOVES_COLOR, _GROUP_COLOR = "#fde3d9", "#e7f0fb"


class SmartMemAdapter(Adapter):  # type: ignore[misc]
    """Opens `.mlir` files of any stage, with the layouts of tensors as overlays."""

    metadata: ClassVar[AdapterMetadata] = AdapterMetadata(
        id="smartmem_mlir",
        name="SmartMem-MLIR",
        description="MLIR with tensor layouts: imported modules, after each pass, and IREE's flow IR",
        fileExts=["mlir"],
    )

    def convert(self, model_path: str, settings: dict[str, Any]) -> ModelExplorerGraphs:
        """One graph for each function.

        Args:
            model_path: The file.
            settings: Model Explorer's; none is used.

        Raises:
            InvalidModelError: The file is no module that MLIR 22 reads.
        """
        functions = _read(Path(model_path))
        return {"graphs": [_graph(name, operations) for name, operations in functions.items()]}


def _read(path: Path) -> dict[str, list[dict[str, Any]]]:
    with tempfile.TemporaryDirectory(prefix="smartmem-explorer-") as folder:
        result = Path(folder) / "functions.json"
        command = [sys.executable, "-m", "smartmem_mlir.model_explorer.operations", str(path), str(result)]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        if done.returncode != 0 or not result.is_file():
            lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
            raise InvalidModelError(lines[-1], file=path)
        functions: dict[str, list[dict[str, Any]]] = json.loads(result.read_text())
        return functions


def _graph(name: str, operations: list[dict[str, Any]]) -> builder.Graph:
    graph = builder.Graph(id=name)
    by_id = {operation["id"]: operation for operation in operations}
    by_layout: dict[tuple[str, str], list[builder.Edge]] = defaultdict(list)
    for operation in operations:
        graph.nodes.append(_node(operation))
        for source, position in operation["operands"]:
            tensor = by_id[source]["results"][position]
            if tensor["storage"]:
                edge = builder.Edge(sourceNodeId=source, targetNodeId=operation["id"], label=tensor["storage"])
                by_layout[tensor["storage"], tensor["layout"]].append(edge)
    if by_layout:
        overlays = [
            builder.EdgeOverlay(
                name=f"{storage}: {layout}", edgeColor=_STORAGE_COLORS.get(storage, _IMAGE_COLOR), edges=edges
            )
            for (storage, layout), edges in sorted(by_layout.items())
        ]
        data = builder.EdgeOverlaysData(name="layouts", overlays=overlays)
        graph.tasksData = builder.TasksData(edgeOverlaysDataListLeftPane=[data])
    graph.groupNodeConfigs = [builder.GroupNodeConfig(namespaceRegex="group .*", backgroundColor=_GROUP_COLOR)]
    return graph


def _node(operation: dict[str, Any]) -> builder.GraphNode:
    node = builder.GraphNode(
        id=operation["id"], label=operation["name"], namespace="/".join(operation["within"]).replace(";", " ")
    )
    if operation["nodes"]:
        node.attrs.append(builder.KeyValue(key="source nodes", value=", ".join(operation["nodes"])))
    for key, value in operation["attributes"].items():
        node.attrs.append(builder.KeyValue(key=key, value=value))
    for position, (source, result) in enumerate(operation["operands"]):
        node.incomingEdges.append(
            builder.IncomingEdge(sourceNodeId=source, sourceNodeOutputId=str(result), targetNodeInputId=str(position))
        )
    for position, tensor in enumerate(operation["results"]):
        described = {"tensor_shape": tensor["type"], "layout": tensor["layout"], "storage": tensor["storage"]}
        attrs = [builder.KeyValue(key=key, value=value) for key, value in described.items() if value]
        node.outputsMetadata.append(builder.MetadataItem(id=str(position), attrs=attrs))
    if operation["name"] in _MOVES:
        node.style = builder.GraphNodeStyle(backgroundColor=_MOVES_COLOR)
    return node
