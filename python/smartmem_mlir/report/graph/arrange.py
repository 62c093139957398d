"""Places of a graph's nodes: rows by depth, columns near those that a node reads from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from smartmem_mlir.report.graph.model import Edge, Graph, Node


def arrange(nodes: Sequence[Node], edges: Sequence[Edge]) -> Graph:
    """The graph with rows and columns.

    A node's row is one below the lowest of those that it reads from. Edges against the order of the program, as
    they arise where several operations of one name are drawn as one, say nothing about rows.

    Args:
        nodes: In the order of the program.
        edges: Between them.
    """
    sources: dict[int, list[int]] = defaultdict(list)
    targets: dict[int, list[int]] = defaultdict(list)
    for edge in edges:
        if edge.source < edge.target:
            sources[edge.target].append(edge.source)
            targets[edge.source].append(edge.target)
    row = _rows(nodes, sources, targets)
    members: dict[int, list[int]] = defaultdict(list)
    for number in range(len(nodes)):
        members[row[number]].append(number)
    column = [0.0] * len(nodes)
    for level in sorted(members):
        wanted = {
            number: sum(column[source] for source in sources[number]) / max(len(sources[number]), 1)
            for number in members[level]
        }
        ordered = sorted(members[level], key=lambda number: (wanted[number], number))
        for number, place in zip(ordered, _apart([wanted[number] for number in ordered]), strict=True):
            column[number] = place
    placed = tuple(
        node.model_copy(update={"row": row[number], "column": round(column[number], 3)})
        for number, node in enumerate(nodes)
    )
    return Graph(nodes=placed, edges=tuple(edges))


def _rows(
    nodes: Sequence[Node], sources: Mapping[int, Sequence[int]], targets: Mapping[int, Sequence[int]]
) -> list[int]:
    """Rows from the inputs downwards; what depends on weights alone stands just above what reads it."""
    row = [0] * len(nodes)
    depends: list[bool] = []
    for number, node in enumerate(nodes):
        above = [row[source] for source in sources.get(number, ()) if depends[source]]
        depends.append(node.kind == "input" or bool(above))
        row[number] = max(above, default=-1) + 1
    for number in reversed(range(len(nodes))):
        if not depends[number]:
            row[number] = min((row[target] for target in targets.get(number, ())), default=1) - 1
    first = min(row, default=0)
    return [place - first for place in row]


def _apart(wanted: Sequence[float]) -> list[float]:
    """Places at least 1 apart, in the same order, whose mean is that of the places wanted."""
    places: list[float] = []
    for place in wanted:
        places.append(max(place, places[-1] + 1.0) if places else place)
    shift = (sum(wanted) - sum(places)) / max(len(places), 1)
    return [place + shift for place in places]
