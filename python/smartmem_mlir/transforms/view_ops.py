"""`smartmem.view` operations and the pure views of `index_maps`, each from the other."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from smartmem_mlir.dialects import smartmem
from smartmem_mlir.index_maps.box import Box
from smartmem_mlir.index_maps.view import Fill, Piece, Scalar, View
from smartmem_mlir.transforms.attribute_cache import remembered
from smartmem_mlir.transforms.structured import read_map, write_map

VIEW = "smartmem.view"


def defining_op(value: ir.Value) -> ir.Operation | None:
    """The operation that `value` is a result of, None for a block argument."""
    owner = value.owner
    return None if isinstance(owner, ir.Block) else owner.operation


def splat_constant(value: ir.Value) -> float | None:
    """The number that a constant, or every element of a constant or filled tensor, is; None for other values."""
    op = defining_op(value)
    if op is not None and op.name == "linalg.fill":
        op = defining_op(op.operands[0])
    if op is None or op.name != "arith.constant":
        return None
    attribute = op.attributes["value"]
    if isinstance(attribute, ir.DenseElementsAttr):
        if not attribute.is_splat:
            return None
        attribute = attribute.get_splat_value()
    return float(attribute.value)


def is_view(op: ir.Operation | None) -> bool:
    """Whether the operation is a `smartmem.view`."""
    return op is not None and op.name == VIEW


def shape_of(value: ir.Value) -> tuple[int, ...]:
    """Static shape of a ranked tensor value."""
    return tuple(value.type.shape)


def read_view(op: ir.Operation) -> View:
    """The view that a `smartmem.view` operation computes from its operands."""
    return _read_pieces(
        op.attributes["pieces"], shape_of(op.results[0]), tuple(shape_of(operand) for operand in op.operands)
    )


@remembered
def _read_pieces(attributes: ir.ArrayAttr, shape: tuple[int, ...], operands: tuple[tuple[int, ...], ...]) -> View:
    pieces = []
    for attr in attributes:
        piece = smartmem.PieceAttr(attr)
        box = Box(tuple(piece.lower), tuple(piece.upper))
        if piece.source is None:
            assert piece.fill is not None
            pieces.append(Piece(box, Fill(piece.fill.value), ()))
        else:
            pieces.append(Piece(box, piece.source, read_map(piece.map)))
    return View.of(shape, operands, pieces)


def write_view(view: View, sources: Sequence[ir.Value], element_type: ir.Type) -> ir.Value:
    """Creates the view at the insertion point, or returns the source when the view is that source unchanged.

    Args:
        view: What to compute.
        sources: One tensor per operand of the view; repeated and unused ones are merged.
        element_type: Element type of the result, which all sources share.
    """
    view, kept = view.share_operands(sources)
    sources = [sources[at] for at in kept]
    if view.is_identity():
        return sources[0]
    rank = len(view.shape)
    pieces = [
        smartmem.PieceAttr.filled(piece.box.lo, piece.box.hi, _scalar_attr(piece.source.value, element_type))
        if isinstance(piece.source, Fill)
        else smartmem.PieceAttr.read(piece.box.lo, piece.box.hi, piece.source, write_map(piece.exprs, rank))
        for piece in view.pieces
    ]
    result = ir.RankedTensorType.get(list(view.shape), element_type)
    return smartmem.ViewOp(result, sources, pieces).result


def _scalar_attr(value: Scalar, type_: ir.Type) -> ir.Attribute:
    if isinstance(type_, ir.IntegerType):
        return ir.IntegerAttr.get(type_, int(value))
    return ir.FloatAttr.get(type_, float(value))
