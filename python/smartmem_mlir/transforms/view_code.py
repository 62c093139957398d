"""Reading one element of a view: index arithmetic and selection, inside a linalg body."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from mlir.dialects import affine, arith, linalg, tensor

from smartmem_mlir.index_maps.box import Box, Ranges
from smartmem_mlir.index_maps.expr import Expr, dim
from smartmem_mlir.index_maps.separable import coordinate_choices
from smartmem_mlir.index_maps.view import Fill, Piece, View
from smartmem_mlir.transforms.structured import write_map
from smartmem_mlir.transforms.view_ops import shape_of


def read_element(
    view: View, sources: Sequence[ir.Value], indices: Sequence[ir.Value], element_type: ir.Type
) -> ir.Value:
    """The element of the view at `indices`, computed at the insertion point.

    A piece that does not hold the element is read at index 0 and not selected, so that no read is out of bounds.

    Args:
        view: What to read.
        sources: One tensor per operand of the view.
        indices: One `index` value per axis of the view.
        element_type: Element type of the result.
    """
    choices = coordinate_choices(view) if len(view.pieces) > 1 else None
    if choices is not None and isinstance(number := view.pieces[0].source, int):
        return tensor.extract(sources[number], _selected_coordinates(choices, view.shape, indices))
    result: ir.Value | None = None
    for piece in reversed(view.pieces):
        inside = None if result is None else _inside(piece.box, view.shape, indices)
        value = _piece_value(piece, view, sources, indices, inside, element_type)
        result = value if result is None or inside is None else arith.select(inside, value, result)
    assert result is not None, "a view has at least one piece"
    return result


def _selected_coordinates(
    choices: Sequence[Sequence[tuple[Expr, Box]]], shape: Sequence[int], indices: Sequence[ir.Value]
) -> list[ir.Value]:
    """The coordinates that all pieces read one tensor at, chosen one by one, so that there is one read."""
    coordinates = []
    for parts in choices:
        chosen: ir.Value | None = None
        for expr, box in parts:
            inside = None if chosen is None else _inside(box, shape, indices)
            index = index_value(expr, indices)
            chosen = index if chosen is None or inside is None else arith.select(inside, index, chosen)
        assert chosen is not None, "a view has at least one piece"
        coordinates.append(chosen)
    return coordinates


def element_indices(exprs: Sequence[Expr]) -> list[ir.Value]:
    """Index values for expressions over the iteration space of the body at the insertion point."""
    used = sorted(set().union(*(expr.dims for expr in exprs)))
    values: dict[int, ir.Value] = {d: linalg.IndexOp(d).result for d in used}
    loop = [values.get(d) for d in range(max(used, default=-1) + 1)]
    return [index_value(expr, loop) for expr in exprs]


def _inside(box: Box, shape: Sequence[int], indices: Sequence[ir.Value]) -> ir.Value | None:
    """Whether the indices lie in the box, None when they always do."""
    condition: ir.Value | None = None
    for axis, extent in enumerate(shape):
        bounds = ((arith.CmpIPredicate.uge, box.lo[axis], 0), (arith.CmpIPredicate.ult, box.hi[axis], extent))
        for predicate, bound, trivial in bounds:
            if bound == trivial:
                continue
            limit = arith.constant(ir.IndexType.get(), bound)
            holds = arith.cmpi(predicate, indices[axis], limit)
            condition = holds if condition is None else arith.andi(condition, holds)
    return condition


def _piece_value(
    piece: Piece,
    view: View,
    sources: Sequence[ir.Value],
    indices: Sequence[ir.Value],
    inside: ir.Value | None,
    element_type: ir.Type,
) -> ir.Value:
    if isinstance(piece.source, Fill):
        return fill_constant(piece.source, element_type)
    source = sources[piece.source]
    ranges = Ranges(view.box)
    coordinates = []
    for expr, extent in zip(piece.exprs, shape_of(source), strict=True):
        index = index_value(expr, indices)
        lo, hi = ranges.of(expr)
        if lo < 0 or hi >= extent:
            # Only the last piece has no condition, and only when the boxes before it take what it does not cover.
            zero = arith.constant(ir.IndexType.get(), 0)
            limit = arith.constant(ir.IndexType.get(), extent - 1)
            index = (
                arith.minsi(arith.maxsi(index, zero), limit) if inside is None else arith.select(inside, index, zero)
            )
        coordinates.append(index)
    return tensor.extract(source, coordinates)


def index_value(expr: Expr, indices: Sequence[ir.Value | None]) -> ir.Value:
    """`expr` of index values; those of dimensions that do not occur may be None."""
    atom = expr.single_atom
    if atom is not None and expr.dims and expr is dim(min(expr.dims)):
        return indices[min(expr.dims)]
    if expr.is_constant:
        return arith.constant(ir.IndexType.get(), expr.const)
    used = sorted(expr.dims)
    renumbered = expr.substitute([dim(used.index(d)) if d in used else Expr(0) for d in range(max(used) + 1)])
    return affine.apply(write_map([renumbered], len(used)), [indices[d] for d in used])


def fill_constant(fill: Fill, element_type: ir.Type) -> ir.Value:
    """The fill as a scalar constant."""
    if isinstance(element_type, ir.IntegerType):
        return arith.constant(element_type, int(fill.value))
    return arith.constant(element_type, float(fill.value))
