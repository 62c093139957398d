"""Joining the pieces of rolls and strided slices, checked by ISL and by executing the view."""

from __future__ import annotations

import numpy as np
import pytest

from smartmem_mlir.index_maps import movement
from smartmem_mlir.index_maps.expr import Expr, dim
from smartmem_mlir.index_maps.isl import prove_views_equal
from smartmem_mlir.index_maps.unify import unify_pieces
from smartmem_mlir.index_maps.view import Piece, View, apply

D0, D1, D2, D3 = (dim(i) for i in range(4))


def rolled_by_slices(shape: tuple[int, ...], shift: int, axis: int) -> View:
    """A roll towards lower indices, as exporters spell it: two slices and a concatenation."""
    n = shape[axis]
    starts = [0] * len(shape)
    head, tail = list(shape), list(shape)
    head[axis], tail[axis] = n - shift, shift
    first = movement.slice_(shape, [shift if i == axis else s for i, s in enumerate(starts)], head)
    second = movement.slice_(shape, starts, tail)
    joined = movement.concat([tuple(head), tuple(tail)], axis).compose(first, 0).compose(second, 1)
    return joined.share_operands(["x", "x"])[0]


def same(view: View, other: View) -> None:
    tensor = np.arange(np.prod(view.operands[0])).reshape(view.operands[0])
    np.testing.assert_array_equal(apply(view, [tensor]), apply(other, [tensor]))
    assert prove_views_equal(view, other)


@pytest.mark.parametrize("shift", [1, 3, 53, 55])
def test_roll_is_one_map(shift: int) -> None:
    boxes = rolled_by_slices((56, 2), shift, 0)
    assert len(boxes.pieces) == 2
    view = unify_pieces(boxes)
    assert [piece.exprs for piece in view.pieces] == [((D0 + shift) % 56, D1)]
    same(view, boxes)


def test_roll_along_two_axes_is_one_map() -> None:
    rows = rolled_by_slices((1, 14, 14, 4), 3, 1)
    both = rolled_by_slices((1, 14, 14, 4), 3, 2).compose(rows)
    assert len(both.pieces) == 4
    view = unify_pieces(both)
    assert [piece.exprs for piece in view.pieces] == [(Expr(0), (D1 + 3) % 14, (D2 + 3) % 14, D3)]
    same(view, both)


def test_patch_merging_is_one_map() -> None:
    """Four strided slices side by side: the slice's number is read off the channel."""
    shape, corners = (8, 8, 6), [(0, 0), (1, 0), (0, 1), (1, 1)]
    view = movement.concat([(4, 4, 6)] * 4, 2)
    for i, (dy, dx) in enumerate(corners):
        view = view.compose(movement.slice_(shape, [dy, dx, 0], [4, 4, 6], [2, 2, 1]), i)
    view = view.share_operands(["x"] * 4)[0]
    one = unify_pieces(view)
    assert [piece.exprs for piece in one.pieces] == [(2 * D0 + D2 // 6 % 2, 2 * D1 + D2 // 12, D2 % 6)]
    same(one, view)


def test_sources_and_unrelated_maps_stay_apart() -> None:
    apart = movement.concat([(3,), (4,)], 0)
    assert unify_pieces(apart) is apart
    left, right = apart.box.with_axis(0, 0, 2), apart.box.with_axis(0, 2, 7)
    crossed = View.of((7,), [(19,)], [Piece(left, 0, (D0 * 2,)), Piece(right, 0, (D0 * 3 - 5,))])
    assert len(unify_pieces(crossed).pieces) == 2


def test_a_gap_is_no_rotation() -> None:
    """Reads 0..2, then 5..7 of nine: not (d0 + k) mod m for any m, but a digit of d0."""
    whole = View.identity((6,)).box
    left, right = whole.with_axis(0, 0, 3), whole.with_axis(0, 3, 6)
    view = View.of((6,), [(9,)], [Piece(left, 0, (D0,)), Piece(right, 0, (D0 + 2,))])
    joined = unify_pieces(view)
    same(joined, view)
    assert [piece.exprs for piece in joined.pieces] == [(D0 + 2 * (D0 // 3),)]
