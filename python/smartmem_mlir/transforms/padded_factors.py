"""Paddings that a contraction's kernel may do itself, because nothing else reads what they make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from mlir import ir

from smartmem_mlir.index_maps.view import Fill, View
from smartmem_mlir.transforms.claims import claim
from smartmem_mlir.transforms.ir_walk import has_one_use
from smartmem_mlir.transforms.map_group import is_copy
from smartmem_mlir.transforms.view_ops import defining_op, is_view, read_view, write_view


@dataclass(frozen=True)
class Padding:
    """A tensor with numbers around it.

    Args:
        made_by: The view, or the `smartmem.group` that does nothing else.
        views: The views that it is, the one whose result it is first.
        source: The tensor.
    """

    made_by: ir.Operation
    views: tuple[ir.Operation, ...]
    source: ir.Value

    @property
    def view(self) -> View:
        """The padded tensor as one view of the source."""
        return reduce(View.compose, map(read_view, self.views))


def padding_of(value: ir.Value) -> Padding | None:
    """The padding that makes a tensor for its only reader; None when the tensor is made otherwise."""
    op = defining_op(value)
    if op is None or len(op.operands) != 1 or len(op.results) != 1 or not has_one_use(value):
        return None
    if op.name == "smartmem.group":
        block = op.regions[0].blocks[0]
        inner = block.operations[len(block.operations) - 1].operation.operands[0]
        views = _views_to(inner, block.arguments[0])
    else:
        views = (op,) if is_view(op) else None
    if not views:
        return None
    padding = Padding(op, views, op.operands[0])
    kinds = [isinstance(piece.source, Fill) for piece in padding.view.pieces]
    return padding if any(kinds) and not all(kinds) else None


def _views_to(value: ir.Value, argument: ir.Value) -> tuple[ir.Operation, ...] | None:
    """The views by which a value is made of a group's argument and of nothing else; copies change nothing."""
    found: list[ir.Operation] = []
    while value != argument:
        op = defining_op(value)
        if op is None or not (is_copy(op) or (is_view(op) and len(op.operands) == 1)):
            return None
        if is_view(op):
            found.append(op)
        value = op.operands[0]
    return tuple(found)


def take_padding(group: ir.Operation, number: int, padding: Padding) -> None:
    """Moves a padding into the `smartmem.group` that reads it.

    Args:
        group: The group.
        number: Which operand of it is padded.
        padding: What makes that; erased.
    """
    block = group.regions[0].blocks[0]
    argument = block.arguments[number]
    element = argument.type.element_type
    group.operands[number] = padding.source
    readers: Sequence[ir.OpOperand] = list(argument.uses)
    argument.set_type(padding.source.type)
    view = padding.view
    claim(padding.views[0], [read_view(op) for op in padding.views], view)
    with ir.InsertionPoint.at_block_begin(block), ir.Location.fused([op.location for op in padding.views]):
        padded = write_view(view, [argument], element)
    for use in readers:
        use.owner.operation.operands[use.operand_number] = padded
    padding.made_by.erase()
