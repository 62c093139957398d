"""Operations in another order: over the index space of what is behind a view that they read, instead of the view's.

The row sums of windows of a matrix are windows of the matrix's row sums. What decides whether that is better is
elsewhere; here is what it takes: a bijective view, and an operation that treats the elements it moves alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from mlir import ir

from smartmem_mlir.index_maps.box import Box
from smartmem_mlir.index_maps.errors import NotInvertibleError
from smartmem_mlir.index_maps.expr import ZERO, Dim, Expr, dim, dims
from smartmem_mlir.index_maps.inverse import inverse
from smartmem_mlir.index_maps.simplify import simplify_exprs
from smartmem_mlir.index_maps.view import View
from smartmem_mlir.transforms.access_folding import projected_read, reads_index, through_views
from smartmem_mlir.transforms.claims import access_view, claim, claim_reread, is_recorded, views_above
from smartmem_mlir.transforms.locations import fuse
from smartmem_mlir.transforms.structured import (
    Access,
    StructuredOp,
    build_generic,
    coordinates_of_dims,
    is_projection,
    splat_init,
)
from smartmem_mlir.transforms.view_ops import defining_op, shape_of, write_view


def can_be_reordered(op: StructuredOp) -> bool:
    """Whether the operation starts from the same value everywhere and does not ask for its position."""
    starts = [defining_op(output) for output in op.outputs]
    return (
        len(starts) == 1
        and starts[0] is not None
        and starts[0].name in ("tensor.empty", "linalg.fill")
        and not reads_index(op)
    )


@dataclass(frozen=True)
class Order:
    """An operation over the iteration space of a view's source instead of the view.

    Args:
        old_dims: Each dimension of the operation over the new ones: the source's axes and the dimensions that the
            viewed operand does not have, those that are reduced last.
        extents: The new iteration space.
        reductions: Which of its dimensions are reduced.
        result_shape: Shape of the new result.
        result_access: How the new operation writes it.
        result_view: The old result as a view of the new one.
    """

    old_dims: tuple[Expr, ...]
    extents: tuple[int, ...]
    reductions: tuple[bool, ...]
    result_shape: tuple[int, ...]
    result_access: Access
    result_view: View

    def read(self, access: Access) -> Access:
        """An old access over the new space."""
        return simplify_exprs([expr.substitute(self.old_dims) for expr in access], Box.of(self.extents))


def order_of(op: StructuredOp, number: int, view: View) -> Order | None:
    """The operation in the order of what is behind `view`, its input `number`; None where it has no such order."""
    access, forward = op.input_accesses[number], view.single_map
    if forward is None or not all(isinstance(expr.single_atom, Dim) for expr in access) or not is_projection(access):
        return None
    if not is_projection(op.output_accesses[0]) or ZERO in op.output_accesses[0]:
        return None
    try:
        backward = inverse(forward, Box.of(view.operands[0]))
    except NotInvertibleError:
        return None
    own = [min(expr.dims) for expr in access]
    others = [d for d in range(len(op.extents)) if d not in own]
    reduced = _new_reductions(op, forward.exprs, own)
    if reduced is None:
        return None
    reduced += [op.reductions[d] for d in others]
    # Each new dimension's extent, and its index over the coordinates of the old result.
    placed = coordinates_of_dims(op.output_accesses[0], len(op.extents))
    extents = [*view.operands[0], *(op.extents[d] for d in others)]
    over_result = [expr.substitute([placed[d] for d in own]) for expr in forward.exprs] + [placed[d] for d in others]
    # Reduced dimensions last, where code generators expect them.
    new = sorted(range(len(extents)), key=lambda i: reduced[i])
    places = [dim(new.index(i)) for i in range(len(extents))]
    old: list[Expr] = [ZERO] * len(op.extents)
    for d, expr in zip(own, backward.exprs, strict=True):
        old[d] = expr.substitute(places[: len(view.operands[0])])
    for d, index in zip(others, places[len(view.operands[0]) :], strict=True):
        old[d] = index
    kept = new[: reduced.count(False)]
    shape = tuple(extents[i] for i in kept)
    result = View.mapped(shape_of(op.op.results[0]), shape, [over_result[i] for i in kept])
    return Order(
        tuple(old),
        tuple(extents[i] for i in new),
        tuple(reduced[i] for i in new),
        shape,
        dims(len(kept)),
        result,
    )


def _new_reductions(op: StructuredOp, forward: Sequence[Expr], own: Sequence[int]) -> list[bool] | None:
    """Which of the source's axes are reduced; None where the view mixes reduced dimensions with others."""
    reduced = {coordinate for coordinate, d in enumerate(own) if op.reductions[d]}
    flags = []
    for expr in forward:
        if expr.dims & reduced and not isinstance(expr.single_atom, Dim):
            return None
        flags.append(bool(expr.dims & reduced))
    return flags


def reordered(op: StructuredOp, order: Order) -> ir.Value:
    """The operation in the new order and the view of it that the old result is, created in its place."""
    moved: list[ir.Location] = []
    claimed: list[tuple[ir.Value, Access, ir.Value, View | None, Access]] = []
    with ir.InsertionPoint(op.op), op.op.location:
        inputs: list[ir.Value] = []
        accesses: list[Access] = []
        # The operands as they are by now: `op` was read before the operations in front of it were reordered.
        for value, access in zip(list(op.op.operands)[: len(op.inputs)], op.input_accesses, strict=True):
            read, behind = order.read(access), value
            if not is_projection(read):
                behind, read = through_views(value, read, order.extents)
            above = [view.location for view in views_above(value, behind)]
            made: list[View] = []
            with fuse([op.op.location, *above]):
                source, read = projected_read(behind, read, order.extents, partial(_make_view, made))
            moved += above
            inputs.append(source)
            accesses.append(read)
            if isinstance(value.type, ir.RankedTensorType):
                claimed.append((value, access, behind, made[0] if made else None, read))
        output = splat_init(op.outputs[0], order.result_shape)
        assert output is not None, "the start value was checked to be uniform"
        accesses.append(order.result_access)
        claim_reread(op, order.extents, order.old_dims, claimed)
        _claim_result(op, order)
        result = build_generic(inputs, [output], accesses, order.reductions, op.body).results[0]
        with fuse([op.op.location, *moved]):
            return write_view(order.result_view, [result], result.type.element_type)


def _make_view(made: list[View], view: View, value: ir.Value) -> ir.Value:
    made.append(view)
    return write_view(view, [value], value.type.element_type)


def _claim_result(op: StructuredOp, order: Order) -> None:
    """Records that the view of the new result holds each element where the old result held it."""
    if is_recorded():
        chain = [
            access_view(order.extents, op.extents, order.old_dims),
            access_view(op.extents, shape_of(op.outputs[0]), op.output_accesses[0]),
            order.result_view,
        ]
        claim(op.op, chain, access_view(order.extents, order.result_shape, order.result_access))
