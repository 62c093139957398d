"""The paper's rule (section 3.2.2): each contraction writes contiguously what the next one reduces over.

Read for kernels that fill vectors along the result: a contraction writes the dimension that comes from its second
factor contiguously, because that is what the next contraction reduces over. The order then flows through whatever
follows (elementwise operations, borders, pooling), and each of those takes the order of the largest operand it reads.
One sweep in program order; no cost is compared.
"""

from __future__ import annotations

from math import prod

from smartmem_mlir.layouts.graph import Graph, Loops, Move, Order, identity_order, lane_candidates
from smartmem_mlir.layouts.propagation import all_dims, dims_in_order, forward_view, order_by_dims


def greedy_orders(graph: Graph) -> tuple[Order, ...]:
    """The order of each tensor of the graph."""
    orders = [identity_order(len(tensor.shape)) for tensor in graph.tensors]
    for op in graph.operations:
        if isinstance(op, Move) and op.sources:
            orders[op.result] = _unless_pinned(graph, op.result, forward_view(op, orders[op.sources[0]]))
        elif isinstance(op, Loops) and op.permutable:
            ranked = _dims_by_contiguity(op, orders)
            for result in op.outputs:
                orders[result.tensor] = _unless_pinned(graph, result.tensor, order_by_dims(result.access, ranked))
    return tuple(orders)


def _unless_pinned(graph: Graph, tensor: int, order: Order) -> Order:
    return identity_order(len(order)) if graph.tensors[tensor].pinned else order


def _dims_by_contiguity(op: Loops, orders: list[Order]) -> list[int]:
    """Each dimension of the operation, outermost first."""
    ranked = _dims_of_largest_input(op, orders)
    lanes = lane_candidates(op)
    if lanes:
        lane = lanes[-1]
        # A first factor that has the dimension too (depthwise) is wanted contiguous along it as well.
        if lane not in op.inputs[0].dims or ranked[-1] == lane:
            ranked = [d for d in ranked if d != lane] + [lane]
    return ranked


def _dims_of_largest_input(op: Loops, orders: list[Order]) -> list[int]:
    best: list[int] = []
    for use in op.inputs:
        dims = dims_in_order(use, orders[use.tensor])
        if prod(op.extents[d] for d in dims) > prod(op.extents[d] for d in best):
            best = dims
    return all_dims(op, best)
