"""Which nodes of the source model each kernel computes.

A kernel's location names the node whose result it writes, and for some kernels more. What it computes besides follows
from the source model: everything that this result depends on and that no other kernel writes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from smartmem_mlir.report.graph.model import Graph


def join(before: Graph, after: Graph) -> tuple[Graph, Graph]:
    """Both graphs, operators with the kernel that computes them and kernels with all that they compute.

    Layout transformations are no part of this: who reads or writes through them is known from the passes.

    Args:
        before: The source model.
        after: The kernels.
    """
    owner = _owners(before, after)
    nodes = tuple(
        node.model_copy(update={"computed_by": after.nodes[owner[number]].label}) if number in owner else node
        for number, node in enumerate(before.nodes)
    )
    computed: dict[int, list[str]] = defaultdict(list)
    for number, kernel in sorted(owner.items()):
        computed[kernel].append(before.nodes[number].name)
    kernels = tuple(
        node.model_copy(update={"sources": tuple(dict.fromkeys((*node.sources, *computed[number])))})
        for number, node in enumerate(after.nodes)
    )
    return Graph(nodes=nodes, edges=before.edges), Graph(nodes=kernels, edges=after.edges)


def _owners(before: Graph, after: Graph) -> dict[int, int]:
    """For each operator that computes, the kernel, as places in the graphs."""
    number_of = {node.name: number for number, node in enumerate(before.nodes) if node.kind == "operator"}
    sources: dict[int, list[int]] = defaultdict(list)
    for edge in before.edges:
        sources[edge.target].append(edge.source)
    owner: dict[int, int] = {}
    for number, node in enumerate(after.nodes):
        if node.kind == "kernel":
            for name in node.sources:
                if name in number_of:
                    owner.setdefault(number_of[name], number)
    for written, kernel in sorted(owner.items()):
        _claim(written, kernel, sources, owner)
    # Behind the node that a kernel is named after: elementwise operations that IREE took into it.
    for number, node in enumerate(before.nodes):
        known = [owner[source] for source in sources[number] if source in owner]
        if number not in owner and node.kind == "operator" and known:
            owner[number] = known[0]
    return {
        number: kernel
        for number, kernel in owner.items()
        if before.nodes[number].kind == "operator" and not before.nodes[number].verdict
    }


def _claim(written: int, kernel: int, sources: Mapping[int, Sequence[int]], owner: dict[int, int]) -> None:
    """Gives a kernel what its result depends on, back to what other kernels write."""
    pending = list(sources.get(written, ()))
    while pending:
        number = pending.pop()
        if number not in owner:
            owner[number] = kernel
            pending.extend(sources.get(number, ()))
