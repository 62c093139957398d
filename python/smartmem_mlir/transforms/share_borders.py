"""share-borders: a tensor that somebody reads with a border around it is stored with the border.

A convolution reads its image padded, a residual addition the image alone. With two readers the padding would be a copy;
stored with the border, the image is a slice that costs nothing, and the kernel that computes it writes the border too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from smartmem_mlir.index_maps.box import Box
from smartmem_mlir.index_maps.expr import ZERO, dim
from smartmem_mlir.index_maps.view import Fill, Piece, Scalar, View
from smartmem_mlir.transforms.claims import claim, views_between
from smartmem_mlir.transforms.ir_walk import block_operations, erase_dead, users
from smartmem_mlir.transforms.pass_base import Pass, option
from smartmem_mlir.transforms.structured import read_structured
from smartmem_mlir.transforms.view_ops import defining_op, is_view, read_view, shape_of, write_view

MAX_DEPTH = 32
"""Elementwise operations that are followed back to a contraction."""


@dataclass(frozen=True)
class _Frame:
    """How a view surrounds its source.

    Args:
        fill: What stands outside.
        axes: For each axis of the source, the axis of the view that it is, None for an axis of extent 1 that the view
            does not have; other axes of the view have extent 1.
        offsets: For each axis of the source, its coordinate at index 0 of the view.
        extents: For each axis of the source, how much of it and of what is around it the view has.
        shape: The view's shape.
    """

    fill: Scalar
    axes: tuple[int | None, ...]
    offsets: tuple[int, ...]
    extents: tuple[int, ...]
    shape: tuple[int, ...]


def share_borders(root: ir.Operation, rows: bool = False) -> int:
    """Stores tensors with the borders that their readers want.

    Args:
        root: The module.
        rows: Whether kernels over rows write borders as well.

    Returns:
        How many tensors.
    """
    shared = 0
    for op in block_operations(root):
        if len(op.results) == 1 and _ends_a_kernel(op, rows) and _share(op):
            shared += 1
    erase_dead(root)
    return shared


def _ends_a_kernel(op: ir.Operation, rows: bool, depth: int = 0) -> bool:
    """Whether the operation is a contraction or computes elementwise from one, so that one kernel writes its result.

    With `rows` also from a reduction, as a normalisation does.
    """
    if is_view(op):
        inner = defining_op(op.operands[0]) if len(op.operands) == 1 else None
        return depth > 0 and inner is not None and _ends_a_kernel(inner, rows, depth + 1)
    structured = read_structured(op)
    if structured is None or depth > MAX_DEPTH:
        return False
    if not structured.is_elementwise:
        return structured.is_contraction or (rows and depth > 0)
    inputs = [defining_op(value) for value in structured.inputs]
    return any(inner is not None and _ends_a_kernel(inner, rows, depth + 1) for inner in inputs)


def _share(op: ir.Operation) -> bool:
    value = op.results[0]
    readers = list(users(value))
    frames = [(reader, _frame(reader)) for reader in readers]
    framed = [(reader, frame) for reader, frame in frames if frame is not None]
    if not framed or len(set(map(_identity, readers))) < 2 or len({frame.fill for _, frame in framed}) != 1:
        return False
    shape = shape_of(value)
    rank = len(shape)
    low = [max(0, *(-frame.offsets[a] for _, frame in framed)) for a in range(rank)]
    high = [max(0, *(frame.offsets[a] + frame.extents[a] - shape[a] for _, frame in framed)) for a in range(rank)]
    if not any(low) and not any(high):
        return False
    with ir.InsertionPoint.after(op), op.location:
        bordered = write_view(_surround(shape, low, high, framed[0][1].fill), [value], value.type.element_type)
        whole_frame = _Frame(0, tuple(range(rank)), (0,) * rank, shape, shape)
        plain = _slice(bordered, whole_frame, low)
        slices = [(reader, _slice(bordered, frame, low)) for reader, frame in framed]
    claim(op, views_between(plain, value), View.identity(shape))
    for reader, slice_ in slices:
        claim(reader, views_between(slice_, value), read_view(reader))
    for reader, slice_ in slices:
        reader.results[0].replace_all_uses_with(slice_)
    for use in list(value.uses):
        if _identity(use.owner.operation) != bordered:
            use.owner.operation.operands[use.operand_number] = plain
    return True


def _identity(op: ir.Operation) -> ir.Value:
    """Something to tell operations apart by: their own hash changes with their operands."""
    return op.results[0] if len(op.results) else op


def _frame(op: ir.Operation) -> _Frame | None:
    """How a view surrounds a box of its source with one number; None for other operations."""
    if not is_view(op) or len(op.operands) != 1:
        return None
    view = read_view(op)
    reads = [piece for piece in view.pieces if isinstance(piece.source, int)]
    fills = {piece.source.value for piece in view.pieces if isinstance(piece.source, Fill)}
    if len(reads) != 1 or len(fills) != 1:
        return None
    (piece,) = reads
    axes: list[int | None] = []
    offsets: list[int] = []
    for source_axis, expr in enumerate(piece.exprs):
        if expr == ZERO and view.operands[0][source_axis] == 1:
            axes.append(None)
            offsets.append(0)
            continue
        axis = min(expr.dims, default=-1)
        offset = expr - dim(axis) if axis >= 0 else expr
        if axis < 0 or axis in axes or not offset.is_constant:
            return None
        # Outside the box stands the number, where the source has none: the box must end where the source does.
        starts = piece.box.lo[axis] == 0 or piece.box.lo[axis] + offset.const == 0
        ends = (
            piece.box.hi[axis] == view.shape[axis] or piece.box.hi[axis] + offset.const == view.operands[0][source_axis]
        )
        if not starts or not ends:
            return None
        axes.append(axis)
        offsets.append(offset.const)
    if any(extent != 1 for axis, extent in enumerate(view.shape) if axis not in axes):
        return None
    extents = tuple(1 if axis is None else view.shape[axis] for axis in axes)
    return _Frame(next(iter(fills)), tuple(axes), tuple(offsets), extents, view.shape)


def _surround(shape: Sequence[int], low: Sequence[int], high: Sequence[int], fill: Scalar) -> View:
    """The view with this many elements of `fill` before and after each axis."""
    whole = Box.of([lo + extent + hi for lo, extent, hi in zip(low, shape, high, strict=True)])
    inner = Box(tuple(low), tuple(lo + extent for lo, extent in zip(low, shape, strict=True)))
    pieces = [Piece(inner, 0, tuple(dim(axis) - lo for axis, lo in enumerate(low)))]
    rest = whole
    for axis in range(len(shape)):
        for lo, hi in ((rest.lo[axis], inner.lo[axis]), (inner.hi[axis], rest.hi[axis])):
            if lo < hi:
                pieces.append(Piece(rest.with_axis(axis, lo, hi), Fill(fill), ()))
        rest = rest.with_axis(axis, inner.lo[axis], inner.hi[axis])
    return View.of(whole.extents, [shape], pieces)


def _slice(bordered: ir.Value, frame: _Frame, low: Sequence[int]) -> ir.Value:
    """What a view of the tensor was, as a view of the tensor with `low` elements before each axis."""
    placed = zip(frame.axes, frame.offsets, low, strict=True)
    exprs = [ZERO if axis is None else dim(axis) + (offset + lo) for axis, offset, lo in placed]
    view = View.mapped(frame.shape, shape_of(bordered), exprs)
    return write_view(view, [bordered], bordered.type.element_type)


@dataclass(frozen=True)
class ShareBorders(Pass):
    """Store a tensor with the border that one of its readers wants; the others read a slice.

    Where a tensor has one reader, the border is its producer's already. Only tensors that contractions compute, and
    with `rows` normalisations: their kernels write the border, others would copy.
    """

    argument: ClassVar[str] = "smartmem-share-borders"
    example: ClassVar[str] = "residual.mlir"

    rows: bool = option(False, "also tensors that kernels over rows compute")

    def run(self, op: ir.Operation) -> None:
        """Transforms every function of the module."""
        share_borders(op, self.rows)
