"""The graph that the page of `smartmem explain --html` shows."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

NodeKind = Literal["input", "output", "operator", "kernel", "copy"]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Node(_Part):
    """An operator of the source model, or a kernel with all that it computes.

    Args:
        name: The source node's name, the kernel's entry point, or that of an input or output.
        kind: What it is; "copy" for a copy outside kernels.
        label: What to print on it.
        sources: Names of the source nodes that it computes, the one that it is named after first.
        absorbed: Names of layout transformations that it reads or writes through.
        computed_by: Label of the kernel that computes an operator; empty where that is not known.
        verdict: Of a layout transformation: "eliminated", "kept" or "constant"; of a kernel "movement" if it only
            moves data; else empty.
        reason: Why, as a sentence.
        map: The index map that replaces a transformation, as text.
        location: Where the model's source has it.
        remedy: What would remove a transformation that was kept.
        read_bytes: Bytes that it reads, weights included; None if unknown.
        written_bytes: Bytes that it writes; None if unknown.
        weight_bytes: Bytes of weights among its operands.
        time_ns: Measured time of one call; None if it was not measured.
        row: Place in the picture, from above.
        column: Place in the row, in units of a node's width; 0 is the middle.
    """

    name: str
    kind: NodeKind
    label: str
    sources: tuple[str, ...] = ()
    absorbed: tuple[str, ...] = ()
    computed_by: str = ""
    verdict: str = ""
    reason: str = ""
    map: str = ""
    location: str = ""
    remedy: str = ""
    read_bytes: int | None = None
    written_bytes: int | None = None
    weight_bytes: int = 0
    time_ns: float | None = None
    row: int = 0
    column: float = 0.0


class Edge(_Part):
    """A tensor that one node computes and another one reads.

    Args:
        source: Number of the node that computes it.
        target: Number of the node that reads it.
        shape: Extents as they lie in memory, outermost first.
        dtype: Element type.
        bytes: Size.
        storage: "buffer", or the storage of its encoding.
        order: The written dimensions in the order in which they lie in memory; empty if that is the written order.
        asked_by: The operation that asked for the order.
    """

    source: int
    target: int
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    storage: str = "buffer"
    order: tuple[int, ...] = ()
    asked_by: str = ""


class Graph(_Part):
    """Nodes in the order of the program, and the tensors between them.

    Args:
        nodes: A number is a place in this list.
        edges: The tensors; one that several nodes read occurs once for each.
    """

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]

    def live_bytes(self) -> list[int]:
        """For each node, the bytes of all tensors that are alive while it runs, weights apart.

        A tensor lives from the node that computes it to the last one that reads it.
        """
        last: dict[int, int] = {}
        size: dict[int, int] = {}
        for edge in self.edges:
            last[edge.source] = max(last.get(edge.source, 0), edge.target)
            size[edge.source] = max(size.get(edge.source, 0), edge.bytes)
        change = [0] * (len(self.nodes) + 1)
        for source, until in last.items():
            if until > source:
                change[source] += size[source]
                change[until + 1] -= size[source]
        total, alive = 0, []
        for step in change[:-1]:
            total += step
            alive.append(total)
        return alive
