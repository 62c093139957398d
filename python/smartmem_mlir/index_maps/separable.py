"""Views whose coordinates are chosen one by one: borders of several axes around one tensor."""

from __future__ import annotations

from smartmem_mlir.index_maps.box import Box
from smartmem_mlir.index_maps.cost import DEFAULT_WEIGHTS, Weights, view_cost
from smartmem_mlir.index_maps.expr import Expr
from smartmem_mlir.index_maps.view import Fill, View


def coordinate_choices(view: View) -> list[list[tuple[Expr, Box]]] | None:
    """For each axis of the only operand, its coordinate in disjoint boxes that cover the result.

    Where pieces differ along one axis of the result only, the coordinates that do not move with it are one choice:
    borders of two axes, nine pieces, are three choices and three.

    Returns:
        None when pieces read several operands, or constants.
    """
    read = {piece.source for piece in view.pieces}
    if len(read) != 1 or isinstance(next(iter(read)), Fill):
        return None
    choices = []
    for axis in range(len(view.pieces[0].exprs)):
        hulls: dict[Expr, Box] = {}
        for piece in view.pieces:
            box = hulls.get(piece.exprs[axis], piece.box)
            low = tuple(map(min, box.lo, piece.box.lo))
            hulls[piece.exprs[axis]] = Box(low, tuple(map(max, box.hi, piece.box.hi)))
        # Hulls contain their pieces, which cover the result: with its volume they are disjoint.
        disjoint = sum(box.volume for box in hulls.values()) == view.box.volume
        choices.append(list(hulls.items()) if disjoint else [(p.exprs[axis], p.box) for p in view.pieces])
    return choices


def cost_by_choices(view: View, weights: Weights = DEFAULT_WEIGHTS) -> float:
    """As `view_cost`, where coordinates are chosen one by one if that is cheaper."""
    cost = view_cost(view, weights)
    choices = coordinate_choices(view) if len(view.pieces) > 1 else None
    if choices is None:
        return cost
    by_choices = sum(len(choice) - 1 for choice in choices)
    return cost - weights.piece * max(0, len(view.pieces) - 1 - by_choices)
