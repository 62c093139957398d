"""Weights cut into panels: a few adjacent output channels side by side, as vectors load them."""

from __future__ import annotations

from collections.abc import Sequence

from smartmem_mlir.index_maps.box import Box
from smartmem_mlir.index_maps.expr import Expr
from smartmem_mlir.index_maps.view import Fill, Piece, View


def panelled(shape: Sequence[int], source: Sequence[int], exprs: tuple[Expr, ...], axis: int, rest: int) -> View:
    """A weight in panels, with zeros in the lanes that the last panel has too many.

    Args:
        shape: Of the result; its last dimension counts the lanes of a panel.
        source: Shape of the weight.
        exprs: The element of the weight at each place of the result, where there is one.
        axis: Dimension of the result that counts panels.
        rest: Lanes of the last panel that there are.
    """
    whole, lanes, width = Box.of(shape), len(shape) - 1, shape[-1]
    pieces = [Piece(whole, 0, exprs)]
    if rest < width:
        full = whole.with_axis(axis, 0, shape[axis] - 1)
        last = whole.with_axis(axis, shape[axis] - 1, shape[axis])
        pieces = [
            *([Piece(full, 0, exprs)] if full.volume else []),
            Piece(last.with_axis(lanes, 0, rest), 0, exprs),
            Piece(last.with_axis(lanes, rest, width), Fill(0.0), ()),
        ]
    return View.of(shape, [source], pieces)
