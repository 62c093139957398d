"""The graphs of a compiled directory: the source model, and the kernels that IREE makes of the compiled module."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import prod
from pathlib import Path

from smartmem_mlir.errors import CompilerError
from smartmem_mlir.iree.compiler import CompilerOptions, run_iree_compile
from smartmem_mlir.iree.device_target import compile_flags
from smartmem_mlir.layouts.decision import TensorLayout
from smartmem_mlir.report import directory
from smartmem_mlir.report.explanation import Movement
from smartmem_mlir.report.graph.arrange import arrange
from smartmem_mlir.report.graph.model import Edge, Graph, Node
from smartmem_mlir.report.measure import KernelTime
from smartmem_mlir.report.schema import Report
from smartmem_mlir.report.survivors import remedy

_FLOW_FLAGS = ("--compile-to=flow", "--mlir-print-op-generic", "--mlir-print-debuginfo")


def graph_after(
    folder: Path, report: Report, options: CompilerOptions, times: Mapping[str, KernelTime] | None = None
) -> Graph:
    """Kernels and the tensors between them, from the flow IR that IREE makes of `model.mlir` again.

    Args:
        folder: The compiled directory.
        report: Its report.
        options: Time limit of iree-compile and where a failure leaves its reproducer.
        times: Measured times by the kernel's name.

    Raises:
        CompilerError: iree-compile fails, or its IR cannot be read.
    """
    with tempfile.TemporaryDirectory(prefix="smartmem-graph-") as workspace:
        flow = Path(workspace) / "flow.mlir"
        flags = [*compile_flags(report.target, report.opt_level), *_FLOW_FLAGS]
        run_iree_compile(folder / directory.MODULE, flow, flags, options)
        nodes, edges = _read("flow", flow)
    return arrange(_described_kernels(nodes, report, times or {}), _laid_out(edges, nodes, report))


def graph_before(module: str, movements: Sequence[Movement]) -> Graph:
    """The source model's operators and the tensors between them.

    Args:
        module: The imported module's text, with locations.
        movements: What became of each layout transformation.

    Raises:
        CompilerError: The text cannot be read.
    """
    with tempfile.TemporaryDirectory(prefix="smartmem-graph-") as workspace:
        path = Path(workspace) / "import.mlir"
        path.write_text(module)
        nodes, edges = _read("import", path)
    verdicts = {movement.node: movement for movement in movements}
    described = [_described_operator(node, verdicts.get(node.name)) for node in nodes]
    return arrange(described, _once(edges))


def _read(kind: str, path: Path) -> tuple[list[Node], list[Edge]]:
    """Nodes and edges of a module, read in a process of its own: MLIR's assertions end the process."""
    result = path.with_suffix(".json")
    command = [sys.executable, "-m", "smartmem_mlir.report.graph.worker", kind, str(path), str(result)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode != 0 or not result.is_file():
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise CompilerError(f"the graph cannot be read: {lines[-1]}")
    content = json.loads(result.read_text())
    nodes = [Node.model_validate(node) for node in content["nodes"]]
    return nodes, [Edge.model_validate(edge) for edge in content["edges"]]


def _described_kernels(nodes: Sequence[Node], report: Report, times: Mapping[str, KernelTime]) -> list[Node]:
    """Kernels with their bytes, their time, and the transformations that they read or write through."""
    kernels = {kernel.name: kernel for kernel in report.flow.entries}
    absorbed: dict[str, list[str]] = defaultdict(list)
    for movement in report.movements:
        for reader in movement.into if movement.verdict == "eliminated" else ():
            absorbed[reader].append(movement.node)
    found = []
    for node in nodes:
        kernel = kernels.get(node.name) if node.kind == "kernel" else None
        time = times.get(node.name) if node.kind == "kernel" else None
        names = dict.fromkeys(name for source in node.sources for name in absorbed[source])
        found.append(
            node.model_copy(
                update={
                    "absorbed": tuple(names),
                    "verdict": "movement" if kernel is not None and kernel.moves_data else "",
                    "read_bytes": kernel.read_bytes if kernel is not None else None,
                    "written_bytes": kernel.written_bytes if kernel is not None else None,
                    "time_ns": time.ns / max(time.calls, 1) if time is not None else None,
                }
            )
        )
    return found


def _described_operator(node: Node, movement: Movement | None) -> Node:
    if movement is None:
        return node
    return node.model_copy(
        update={
            "label": f"{movement.operator} {node.name}".strip(),
            "absorbed": movement.into,
            "verdict": movement.verdict,
            "reason": movement.how + (f" ({movement.by})" if movement.by else ""),
            "map": movement.map,
            "location": movement.location,
            "remedy": remedy(movement.how) if movement.verdict == "kept" else "",
        }
    )


def _laid_out(edges: Iterable[Edge], nodes: Sequence[Node], report: Report) -> list[Edge]:
    """Edges with the order of dimensions that was chosen for the tensor, where it is not the written one."""
    chosen: dict[str, list[TensorLayout]] = defaultdict(list)
    for decision in report.layouts:
        for layout in decision.layouts:
            chosen[layout.tensor].append(layout)
    found = []
    for edge in _once(edges):
        for source in nodes[edge.source].sources:
            of = next((layout for layout in chosen[source] if _is_of(layout, edge)), None)
            if of is not None:
                edge = edge.model_copy(update={"order": of.order, "asked_by": of.asked_by})
                break
        found.append(edge)
    return found


def _is_of(layout: TensorLayout, edge: Edge) -> bool:
    """Whether a tensor in memory can be the one of a layout: IREE drops and merges dimensions, never elements."""
    stored = [layout.shape[axis] for axis in layout.order if layout.shape[axis] != 1]
    return prod(stored) == prod(edge.shape) and (
        stored == [extent for extent in edge.shape if extent != 1] or len(edge.shape) < len(layout.shape)
    )


def _once(edges: Iterable[Edge]) -> list[Edge]:
    """Each tensor between two nodes once, however often the one reads it."""
    return list(dict.fromkeys(edges))
