"""How an order of one tensor carries over to another that the same operation touches."""

from __future__ import annotations

from collections.abc import Sequence

from smartmem_mlir.index_maps.expr import Expr
from smartmem_mlir.layouts.graph import Access, Loops, Move, Order, Use, identity_order


def dims_in_order(use: Use, order: Order) -> list[int]:
    """The operation's dimensions as a tensor stored in this order meets them, outermost first."""
    leading = [leading_dim(use.access[axis]) for axis in order]
    return list(dict.fromkeys(d for d in leading if d is not None))


def all_dims(op: Loops, known: Sequence[int]) -> list[int]:
    """`known`, and before them the operation's other dimensions as written."""
    return [d for d in range(len(op.extents)) if d not in known] + list(known)


def order_by_dims(access: Access, dims: Sequence[int]) -> Order:
    """The order of a tensor whose coordinates follow the operation's dimensions as `dims` ranks them.

    Coordinates that depend on no dimension come first; of equal ones the one written first.
    """
    rank = {d: position for position, d in enumerate(dims)}
    leading = [leading_dim(expr) for expr in access]
    return tuple(sorted(range(len(access)), key=lambda axis: -1 if (d := leading[axis]) is None else rank[d]))


def forward_through(op: Loops, source: Use, order: Order, result: Use) -> Order:
    """The order of a result that follows the one of an input."""
    return order_by_dims(result.access, all_dims(op, dims_in_order(source, order)))


def backward_through(op: Loops, result: Use, order: Order, source: Use) -> Order:
    """The order of an input that follows the one of a result; what is reduced stays in the result's innermost loop."""
    kept = dims_in_order(result, order)
    reduced = [d for d in range(len(op.extents)) if d not in kept]
    return order_by_dims(source.access, [*kept, *reduced])


def reductions_last(op: Loops, source: Use) -> Order:
    """The order of an input in which what is reduced is contiguous: what the paper says a reader wants."""
    kept = [d for d, reduced in enumerate(op.reductions) if not reduced]
    reduced = [d for d, is_reduced in enumerate(op.reductions) if is_reduced]
    return order_by_dims(source.access, [*kept, *reduced])


def last(access: Access, lane: int) -> Order:
    """The written order with the coordinate that `lane` leads moved to the end."""
    axes = list(range(len(access)))
    return tuple(sorted(axes, key=lambda axis: leading_dim(access[axis]) == lane))


def forward_view(move: Move, order: Order) -> Order:
    """The order of a view that keeps its source's: each source axis puts the axes that follow it there."""
    rank = len(move.view.shape)
    exprs = largest_piece(move, 0)
    if exprs is None or len(move.sources) != 1:
        return identity_order(rank)
    placed: list[int] = []
    # From the innermost axis outwards: a dimension that moves with several axes goes where its steps are shortest.
    for axis in reversed(order):
        placed[:0] = [d for d in sorted(exprs[axis].dims) if d not in placed]
    return tuple([d for d in range(rank) if d not in placed] + placed)


def backward_view(move: Move, number: int, order: Order) -> Order | None:
    """The order of source `number` that lets the view keep it; None for a source that is not read."""
    exprs = largest_piece(move, number)
    if exprs is None:
        return None
    position = {axis: place for place, axis in enumerate(order)}
    places = [max((position[d] for d in expr.dims), default=-1) for expr in exprs]
    return tuple(sorted(range(len(exprs)), key=lambda axis: places[axis]))


def largest_piece(move: Move, number: int) -> tuple[Expr, ...] | None:
    """The coordinates in source `number` of the piece that reads the most of it."""
    reads = [piece for piece in move.view.pieces if piece.source == number and isinstance(piece.source, int)]
    return max(reads, key=lambda piece: piece.box.volume).exprs if reads else None


def leading_dim(expr: Expr) -> int | None:
    """The dimension that an index moves with most: the parallel one of `2 * oh + kh` comes first in its terms."""
    return min(expr.dims) if expr.dims else None
