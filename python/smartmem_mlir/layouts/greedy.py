"""The paper's rule (section 3.2.2): each contraction writes contiguously what the next one reduces over.

Read for kernels that fill vectors along the result: a contraction writes the dimension that comes from its second
factor contiguously, because that is what the next contraction reduces over. The order then flows through whatever
follows (elementwise operations, borders, pooling), and each of those takes the order of the largest operand it reads.
One sweep in program order; no cost is compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from smartmem_mlir.layouts.graph import Graph, Loops, Move, Order, identity_order, lane_candidates
from smartmem_mlir.layouts.propagation import all_dims, dims_in_order, forward_view, order_by_dims

AS_WRITTEN = "as written"


@dataclass(frozen=True)
class GreedyLayouts:
    """What the rule gives.

    Args:
        orders: The order of each tensor of the graph.
        asked_by: For each, the contraction whose result it follows; `AS_WRITTEN` if it follows none.
    """

    orders: tuple[Order, ...]
    asked_by: tuple[str, ...]


def greedy_layouts(graph: Graph) -> GreedyLayouts:
    """The order of each tensor of the graph."""
    orders = [identity_order(len(tensor.shape)) for tensor in graph.tensors]
    asked_by = [AS_WRITTEN for _ in graph.tensors]

    def choose(tensor: int, order: Order, asked: str) -> None:
        if not graph.tensors[tensor].pinned:
            orders[tensor], asked_by[tensor] = order, asked

    for op in graph.operations:
        if isinstance(op, Move) and op.sources:
            choose(op.result, forward_view(op, orders[op.sources[0]]), asked_by[op.sources[0]])
        elif isinstance(op, Loops) and op.permutable:
            largest, ranked = _largest_input(op, orders)
            asked = AS_WRITTEN if largest is None else asked_by[largest]
            lanes = lane_candidates(op)
            # A first factor that has the dimension too (depthwise) is wanted contiguous along it as well.
            if lanes and (lanes[-1] not in op.inputs[0].dims or ranked[-1] == lanes[-1]):
                ranked = [d for d in ranked if d != lanes[-1]] + [lanes[-1]]
                asked = op.name
            for result in op.outputs:
                choose(result.tensor, order_by_dims(result.access, ranked), asked)
    return GreedyLayouts(tuple(orders), tuple(asked_by))


def _largest_input(op: Loops, orders: list[Order]) -> tuple[int | None, list[int]]:
    """The tensor that the operation reads most of, and all dimensions as that one has them, innermost last."""
    largest: int | None = None
    best: list[int] = []
    for use in op.inputs:
        dims = dims_in_order(use, orders[use.tensor])
        if prod(op.extents[d] for d in dims) > prod(op.extents[d] for d in best):
            largest, best = use.tensor, dims
    return largest, all_dims(op, best)
