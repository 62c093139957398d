"""Composition and inversion of views."""

from __future__ import annotations

from dataclasses import replace

from smartmem_mlir.index_maps.box import Box
from smartmem_mlir.index_maps.errors import (
    ExpressionLimitExceeded,
    IndexMapError,
    IndexOverflowError,
    NotInvertibleError,
    PieceLimitExceeded,
)
from smartmem_mlir.index_maps.expr import Expr, delinearize, has_nested_division, linearize, term_count
from smartmem_mlir.index_maps.inverse import inverse
from smartmem_mlir.index_maps.merge import merge_pieces
from smartmem_mlir.index_maps.preimage import MAX_PIECES, cells
from smartmem_mlir.index_maps.simplify import simplify_exprs
from smartmem_mlir.index_maps.view import Fill, Piece, View

MAX_TERMS = 256
"""Bound on the terms of one piece's index expressions, written out. Chains whose factors line up stay under 30; where
they do not, each step adds terms, and evaluating the result costs more than a copy long before this."""


def compose(outer: View, inner: View, operand: int = 0, *, max_pieces: int = MAX_PIECES) -> View:
    """`outer` with one operand replaced by the view that produces it: no tensor in between.

    Args:
        outer: Reads the operand.
        inner: Produces it.
        operand: Which operand of `outer`; `inner`'s operands take its place in the list of operands.
        max_pieces: Refuse a result of more pieces.

    Returns:
        A view of `outer`'s shape, simplified, its pieces merged where one affine map serves several.

    Raises:
        IndexMapError: `inner`'s shape is not the operand's.
        PieceLimitExceeded: The preimages of `inner`'s boxes are not a few boxes.
        ExpressionLimitExceeded: More than `MAX_TERMS` terms, or constants beyond int64.
    """
    if not 0 <= operand < len(outer.operands) or outer.operands[operand] != inner.shape:
        raise IndexMapError(f"operand {operand} of {list(outer.operands)} is not of shape {list(inner.shape)}")
    grown = len(inner.operands) - 1

    def moved(source: int | Fill) -> int | Fill:
        return source + grown if isinstance(source, int) and source > operand else source

    pieces: list[Piece] = []
    targets = [piece.box for piece in inner.pieces]
    for piece in outer.pieces:
        if piece.source != operand:
            pieces.append(replace(piece, source=moved(piece.source)))
            continue
        for at, box in cells(piece.map, targets, 4 * max_pieces):
            found = inner.pieces[at]
            source = found.source if isinstance(found.source, Fill) else found.source + operand
            pieces.append(Piece(box, source, _composed(inner, found, piece.exprs, box)))
        if len(pieces) > 4 * max_pieces:
            break
    operands = outer.operands[:operand] + inner.operands + outer.operands[operand + 1 :]
    if len(pieces) <= 4 * max_pieces:
        result = merge_pieces(View(outer.shape, operands, ()).with_pieces(pieces))
        if len(result.pieces) <= max_pieces:
            return result
    raise PieceLimitExceeded(
        f"composing needs more than {max_pieces} pieces", hint="keep the result's axes apart, or materialize"
    )


def invert(view: View) -> View:
    """The view that undoes a view: operand 0 as a view of the result.

    Raises:
        NotInvertibleError: The view has fills or several operands, reads an element twice or never, a piece does not
            read a box, or no quasi-affine inverse was found.
    """
    if len(view.operands) != 1:
        raise NotInvertibleError(f"a view of {len(view.operands)} operands has no inverse")
    (operand,) = view.operands
    if Box.of(operand).volume != view.box.volume:
        raise NotInvertibleError(f"shapes {list(view.shape)} and {list(operand)} have different numbers of elements")
    pieces = []
    for piece in view.pieces:
        if isinstance(piece.source, Fill):
            raise NotInvertibleError(f"piece {piece.box} is a constant")
        found = inverse(piece.map)
        pieces.append(Piece(found.domain, 0, found.exprs))
    try:
        return merge_pieces(View.of(operand, [view.shape], pieces))
    except PieceLimitExceeded:
        raise
    except IndexMapError as error:
        raise NotInvertibleError(f"the pieces do not read each element of the operand once: {error.what}") from error


def _composed(inner: View, found: Piece, args: tuple[Expr, ...], box: Box) -> tuple[Expr, ...]:
    """The index expressions of a piece of `inner` with `args` for its dimensions, simplified over `box`."""
    hint = "materialize an intermediate tensor"
    try:
        exprs = simplify_exprs([expr.substitute(args) for expr in found.exprs], box)
        if has_nested_division(exprs) and isinstance(found.source, int):
            # Reshapes whose factors do not line up leave nested divisions. They share one thing, the address: if it
            # comes out simpler, so do the indices read off it.
            operand = inner.operands[found.source]
            (address,) = simplify_exprs([linearize(found.exprs, operand)], found.box)
            (address,) = simplify_exprs([address.substitute(args)], box)
            through_address = simplify_exprs(delinearize(address, operand), box)
            exprs = min(exprs, through_address, key=term_count)
    except IndexOverflowError as error:
        # Shapes fit in int64; what does not are the constants of ever deeper divisions.
        raise ExpressionLimitExceeded(error.what, hint=hint) from error
    if (size := term_count(exprs)) > MAX_TERMS:
        raise ExpressionLimitExceeded(
            f"index expressions of {size} terms, more than {MAX_TERMS}: the reshapes' factors do not line up", hint=hint
        )
    return exprs
