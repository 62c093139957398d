"""Which order the dimensions of each tensor take in memory: the decision, nothing is changed.

An order is a permutation: position i of memory holds dimension `order[i]`, the last position is contiguous. The rule is
the paper's (section 3.2.2), read for kernels that fill vectors along the result: a contraction writes the dimension
that comes from its second factor contiguously, because that is what the next contraction reduces over. The order then flows
through whatever follows (elementwise operations, borders, pooling), and each of those takes the order of the largest
operand it reads. Arguments and results keep the caller's order.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mlir import ir

from smartmem_mlir.index_maps.expr import Dim, Expr
from smartmem_mlir.transforms.structured import Access, StructuredOp, read_structured
from smartmem_mlir.transforms.view_ops import is_view, read_view, shape_of

Order = tuple[int, ...]


def identity_order(rank: int) -> Order:
    """Row-major: the order in which the dimensions are written."""
    return tuple(range(rank))


class DimensionOrders:
    """The order of every tensor of a function.

    Args:
        operations: The function's operations, in program order.
    """

    def __init__(self, operations: Sequence[ir.Operation]) -> None:
        self._orders: dict[ir.Value, Order] = {}
        for op in operations:
            self._choose(op)

    def of(self, value: ir.Value) -> Order:
        """The order of a tensor value."""
        return self._orders.get(value) or identity_order(len(shape_of(value)))

    def is_permuted(self, value: ir.Value) -> bool:
        """Whether the tensor is stored in another order than it is written in."""
        return value in self._orders

    def _choose(self, op: ir.Operation) -> None:
        if is_view(op):
            self._set(op.results[0], self._through_view(op))
            return
        structured = read_structured(op)
        if structured is None or any(_shared_dims(access) is None for access in structured.output_accesses):
            return
        priorities = self._dims_by_contiguity(structured)
        for result, access in zip(op.results, structured.output_accesses, strict=True):
            dims = [min(expr.dims) if expr.dims else -1 for expr in access]
            self._set(result, tuple(sorted(range(len(dims)), key=lambda i: priorities.get(dims[i], -1))))

    def _set(self, value: ir.Value, order: Order) -> None:
        if order != identity_order(len(order)):
            self._orders[value] = order

    def _dims_by_contiguity(self, op: StructuredOp) -> dict[int, int]:
        """Each dimension of the operation with its position in memory, outermost first."""
        ranked = self._dims_of_largest_input(op)
        lane = contiguous_dim(op)
        if lane is not None and not (self._shares(op, lane) and ranked[-1] != lane):
            ranked = [d for d in ranked if d != lane] + [lane]
        return {d: position for position, d in enumerate(ranked)}

    def _shares(self, op: StructuredOp, lane: int) -> bool:
        """Whether the first factor has the dimension too, so that a kernel wants it contiguous there as well."""
        return any(lane in expr.dims for expr in op.input_accesses[0])

    def _dims_of_largest_input(self, op: StructuredOp) -> list[int]:
        """The dimensions as the largest input orders them; those that it does not have come first, as written."""
        whole = list(range(len(op.extents)))
        best: list[int] = []
        for value, access in zip(op.inputs, op.input_accesses, strict=True):
            if not isinstance(value.type, ir.RankedTensorType):
                continue
            ordered = [_leading_dim(access[i]) for i in self.of(value)]
            dims = list(dict.fromkeys(d for d in ordered if d is not None))
            if prod(op.extents[d] for d in dims) > prod(op.extents[d] for d in best):
                best = dims
        return [d for d in whole if d not in best] + best

    def _through_view(self, op: ir.Operation) -> Order:
        """The order that keeps the source's: each axis of the source puts the axes of the result that follow it there."""
        view = read_view(op)
        rank = len(view.shape)
        reads = [piece for piece in view.pieces if isinstance(piece.source, int)]
        if not reads or len(view.operands) != 1:
            return identity_order(rank)
        largest = max(reads, key=lambda piece: piece.box.volume)
        placed: list[int] = []
        for axis in self.of(op.operands[0]):
            placed += [d for d in sorted(largest.exprs[axis].dims) if d not in placed]
        return tuple([d for d in range(rank) if d not in placed] + placed)


def contiguous_dim(op: StructuredOp) -> int | None:
    """The dimension of a contraction's result that should be contiguous; None for other operations.

    That is the dimension of the second factor alone; of several, the innermost, and without one (a depthwise
    convolution) the innermost that both factors have.
    """
    if not op.is_contraction or len(op.inputs) != 2:
        return None
    lhs, rhs = (frozenset().union(*(e.dims for e in access), ()) for access in op.input_accesses)
    written = [min(expr.dims) for expr in op.output_accesses[0] if expr.dims]
    own = [d for d in written if d in rhs and d not in lhs]
    # A dimension that a factor reads at an offset of another (a tap of a convolution) is no candidate.
    both = [d for d in written if d in rhs and d in lhs and _is_plain(op.input_accesses[0], d)]
    for candidates in (own, both):
        if candidates:
            return candidates[-1]
    return None


def _is_plain(access: Access, d: int) -> bool:
    return any(isinstance(expr.single_atom, Dim) and min(expr.dims) == d for expr in access)


def _leading_dim(expr: Expr) -> int | None:
    """The dimension that an index moves with most: the parallel one of `2 * oh + kh` comes first in its terms."""
    return min(expr.dims) if expr.dims else None


def _shared_dims(access: Access) -> Access | None:
    """The access if each coordinate is one dimension or constant, so that its coordinates may be permuted freely."""
    return access if all(not expr.dims or isinstance(expr.single_atom, Dim) for expr in access) else None
