"""The orders that are worth considering for each tensor.

Operations ask: a contraction for a dimension that fills vectors to be contiguous in its result and in a second factor,
for what it reduces over to be contiguous in its factors (the paper's rule), or for both factors to share their lanes.
What is asked of one tensor then spreads over the graph, forwards and backwards, through the permutation that each
operation induces, so that a chain of operations can agree on it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from smartmem_mlir.layouts.graph import Graph, Loops, Move, Order, identity_order, lane_candidates
from smartmem_mlir.layouts.greedy import AS_WRITTEN, GreedyLayouts
from smartmem_mlir.layouts.problem import Variable
from smartmem_mlir.layouts.propagation import (
    backward_through,
    backward_view,
    forward_through,
    forward_view,
    last,
    reductions_last,
)

MAX_CANDIDATES = 6
"""Orders of one tensor: the written one, the paper's, and what is asked for first."""


def find_candidates(graph: Graph, paper: GreedyLayouts) -> tuple[Variable, ...]:
    """The candidates of each tensor.

    Args:
        graph: The function.
        paper: The layouts by the paper's rule, which are candidates so that the choice is never worse.
    """
    search = _Search(graph)
    for tensor, (order, asked_by) in enumerate(zip(paper.orders, paper.asked_by, strict=True)):
        search.offer(tensor, order, asked_by)
    search.settle(paper)
    for op in graph.operations:
        if isinstance(op, Loops) and op.contraction:
            for tensor, order in _asked(op):
                search.offer(tensor, order, op.name)
    search.spread()
    return tuple(
        Variable(tensor.name, tuple(found), tuple(found.values()))
        for tensor, found in zip(graph.tensors, search.found, strict=True)
    )


def _asked(op: Loops) -> Iterator[tuple[int, Order]]:
    """What a contraction wants of its tensors."""
    result = op.outputs[0]
    for lane in reversed(lane_candidates(op)):
        yield result.tensor, last(result.access, lane)
        for factor in op.inputs[:2]:
            if lane in factor.dims:
                yield factor.tensor, last(factor.access, lane)
    for factor in op.inputs[:2]:
        yield factor.tensor, reductions_last(op, factor)


class _Search:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.found: list[dict[Order, str]] = [{identity_order(len(t.shape)): AS_WRITTEN} for t in graph.tensors]
        self._pending: deque[tuple[int, Order]] = deque()
        self._settled: set[int] = set()

    def offer(self, tensor: int, order: Order, asked_by: str) -> None:
        """Notes a candidate, unless the tensor's order is given or it has enough of them."""
        found = self.found[tensor]
        if self.graph.tensors[tensor].pinned or tensor in self._settled:
            return
        if order not in found and len(found) < MAX_CANDIDATES:
            found[order] = asked_by
            self._pending.append((tensor, order))

    def settle(self, paper: GreedyLayouts) -> None:
        """Leaves tensors that exist only inside a kernel to the paper's rule."""
        self._settled = {number for number, tensor in enumerate(self.graph.tensors) if tensor.internal}
        for tensor in self._settled:
            self.found[tensor] = {paper.orders[tensor]: paper.asked_by[tensor]}

    def spread(self) -> None:
        """Carries candidates over, the first asked for first, until nothing new is found."""
        touching: dict[int, list[Loops | Move]] = {}
        for op in self.graph.operations:
            if isinstance(op, Loops | Move):
                for tensor in dict.fromkeys(op.tensors):
                    touching.setdefault(tensor, []).append(op)
        while self._pending:
            tensor, order = self._pending.popleft()
            asked_by = self.found[tensor][order]
            for op in touching.get(tensor, ()):
                for other, carried in _carried(op, tensor, order):
                    self.offer(other, carried, asked_by)


def _carried(op: Loops | Move, tensor: int, order: Order) -> Iterator[tuple[int, Order]]:
    """The orders of the other tensors of an operation that follow from one tensor's."""
    if isinstance(op, Move):
        if tensor == op.result:
            for number, source in enumerate(op.sources):
                carried = backward_view(op, number, order)
                if carried is not None:
                    yield source, carried
        elif len(op.sources) == 1:
            yield op.result, forward_view(op, order)
        else:
            yield op.result, order if len(order) == len(op.view.shape) else identity_order(len(op.view.shape))
        return
    if not op.permutable:
        return
    for use in op.outputs:
        if use.tensor == tensor:
            for read in op.inputs:
                yield read.tensor, backward_through(op, use, order, read)
    for use in op.inputs:
        if use.tensor == tensor and not op.contraction:
            for result in op.outputs:
                yield result.tensor, forward_through(op, use, order, result)
    yield from _between_results(op, tensor, order)


def _between_results(op: Loops, tensor: int, order: Order) -> Iterator[tuple[int, Order]]:
    for use in op.outputs:
        if use.tensor == tensor:
            for other in op.outputs:
                if other.tensor != tensor:
                    yield other.tensor, forward_through(op, use, order, other)
