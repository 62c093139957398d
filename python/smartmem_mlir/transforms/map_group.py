"""Elementwise operations, and paddings, that no other group has, read as kernels over rows that reduce nothing.

Such a kernel seldom deserves a launch of its own, since IREE's is as good. It is there to run in a launch with others:
in front of a kernel that reads the same rows, behind one that computes them, or beside one that reads the same tensor.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from mlir.dialects import linalg, tensor

from smartmem_mlir.index_maps.box import Box
from smartmem_mlir.index_maps.expr import dim, dims
from smartmem_mlir.index_maps.simplify import simplify_exprs
from smartmem_mlir.index_maps.view import Fill, Piece, View
from smartmem_mlir.transforms.claims import claim
from smartmem_mlir.transforms.contraction_growth import border_of
from smartmem_mlir.transforms.growth import grow
from smartmem_mlir.transforms.ir_walk import CONSTANTS, Positions, block_operations
from smartmem_mlir.transforms.row_group import RowGroup, RowGrowth, read_row_group
from smartmem_mlir.transforms.structured import build_generic_with, read_structured
from smartmem_mlir.transforms.view_ops import defining_op, is_view, read_view, splat_constant, write_view


def is_map(op: ir.Operation) -> bool:
    """Whether a map can start with the operation."""
    step = read_structured(op)
    return step is not None and step.is_elementwise


def grow_map(op: ir.Operation, order: Positions) -> RowGroup | None:
    """The largest map that starts with an elementwise operation.

    None where it reads what another operation than a group computes, a stack or a gather for instance: whoever computes
    that can do the rest at once, and a kernel that does nothing but move would be left.
    """
    growth = RowGrowth.start(op, reduces=False)
    if growth is None:
        return None
    members = grow(op, order, growth.add)
    group = read_map_group([*members, *border_of(members)])
    if group is None:
        return None
    reads = [argument.value for step in group.steps for argument in step.arguments if not isinstance(argument, int)]
    return group if all(map(_is_there, reads)) else None


def _is_there(value: ir.Value) -> bool:
    """Whether a value is in memory whatever IREE makes of the function."""
    op = defining_op(value)
    return op is None or op.name in ("smartmem.group", *CONSTANTS) or splat_constant(value) is not None


def read_map_group(members: Sequence[ir.Operation]) -> RowGroup | None:
    """Reads elementwise operations, the last of which may be followed by a border, as one kernel over rows."""
    return read_row_group(members, reduces=False)


def copy_into_borders(root: ir.Operation) -> int:
    """Makes each padding of a tensor that has no kernel yet a copy and a border, so that a map can start with the copy.

    Returns:
        How many there were.
    """
    made = 0
    for op in block_operations(root):
        if is_view(op) and len(op.operands) == 1 and _is_framed(op):
            _copy(op)
            made += 1
    return made


def erase_copies(group: ir.Operation) -> None:
    """Takes the copies out of a map that is not to be a kernel."""
    for inner in [inner.operation for inner in group.regions[0].blocks[0].operations]:
        if is_copy(inner):
            inner.results[0].replace_all_uses_with(inner.operands[0])
            inner.erase()


def is_copy(op: ir.Operation) -> bool:
    """Whether an elementwise operation does nothing."""
    step = read_structured(op)
    if step is None or not step.is_elementwise or len(step.inputs) != 1 or step.accesses[0] != step.accesses[1]:
        return False
    (end, *others) = [inner.operation for inner in step.body.operations]
    return not others and end.operands[0] == step.body.arguments[0]


def _is_framed(op: ir.Operation) -> bool:
    """Whether a view puts constants around a box that it reads from one tensor, f32 and computed."""
    source = defining_op(op.operands[0])
    if source is not None and source.name in CONSTANTS:
        return False
    if not isinstance(op.results[0].type.element_type, ir.F32Type):
        return False
    view = read_view(op)
    reads = [piece for piece in view.pieces if not isinstance(piece.source, Fill)]
    return len(reads) == 1 < len(view.pieces)


def _copy(op: ir.Operation) -> None:
    view = read_view(op)
    (piece,) = (piece for piece in view.pieces if not isinstance(piece.source, Fill))
    box, element = piece.box, op.results[0].type.element_type
    inside = [dim(axis) + low for axis, low in enumerate(box.lo)]
    with ir.InsertionPoint(op), op.location:
        exprs = simplify_exprs([expr.substitute(inside) for expr in piece.exprs], Box.of(box.extents))
        read = View.mapped(box.extents, view.operands[0], exprs)
        source = write_view(read, [op.operands[0]], element)
        empty = tensor.empty(list(box.extents), element)
        rank = len(box.extents)
        copied = build_generic_with(
            [source], [empty], [dims(rank), dims(rank)], [False] * rank, lambda elements: linalg.yield_(elements[:1])
        ).results[0]
        back = tuple(dim(axis) - low for axis, low in enumerate(box.lo))
        pieces = [Piece(p.box, 0, back) if p is piece else p for p in view.pieces]
        border = View.of(view.shape, [box.extents], pieces)
        claim(op, [border, read], view)
        made = write_view(border, [copied], element)
    op.results[0].replace_all_uses_with(made)
    op.erase()
