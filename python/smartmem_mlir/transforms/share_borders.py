"""share-borders: a tensor that somebody reads with a border around it is stored with the border.

A convolution reads its image padded, a residual addition the image alone. With two readers the padding would be a copy;
stored with the border, the image is a slice that costs nothing, and the kernel that computes it writes the border too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from mlir import ir

from smartmem_mlir.index_maps.box import Box
from smartmem_mlir.index_maps.expr import ZERO, Dim, Expr, dim, dims
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
    views = [(reader, read_view(reader)) for reader in readers if is_view(reader) and len(reader.operands) == 1]
    # Tokens that a convolution reads are an image whose rows stand one after the other in one axis.
    image = _Image.of(shape_of(value), [view for _, view in views])
    frames = [(reader, _frame(image.behind(view))) for reader, view in views]
    framed = [(reader, frame) for reader, frame in frames if frame is not None]
    if not framed or len(set(map(_identity, readers))) < 2 or len({frame.fill for _, frame in framed}) != 1:
        return False
    shape = image.shape
    rank = len(shape)
    low = [max(0, *(-frame.offsets[a] for _, frame in framed)) for a in range(rank)]
    high = [max(0, *(frame.offsets[a] + frame.extents[a] - shape[a] for _, frame in framed)) for a in range(rank)]
    if not any(low) and not any(high):
        return False
    element = value.type.element_type
    with ir.InsertionPoint.after(op), op.location:
        # One view, for which kernels know how to write what is around their result.
        around = _surround(shape, low, high, framed[0][1].fill)
        bordered = write_view(around if image.is_whole else around.compose(image.unfold()), [value], element)
        whole_frame = _Frame(0, tuple(range(rank)), (0,) * rank, shape, shape)
        plain = _slice(bordered, whole_frame, low)
        if not image.is_whole:
            plain = write_view(image.fold(), [plain], element)
        slices = [(reader, _slice(bordered, frame, low)) for reader, frame in framed]
    claim(op, views_between(plain, value), View.identity(shape_of(value)))
    for reader, slice_ in slices:
        claim(reader, views_between(slice_, value), read_view(reader))
    for reader, slice_ in slices:
        reader.results[0].replace_all_uses_with(slice_)
    for use in list(value.uses):
        if _identity(use.owner.operation) != bordered:
            use.owner.operation.operands[use.operand_number] = plain
    return True


@dataclass(frozen=True)
class _Image:
    """A tensor, some of whose axes are two axes of an image one after the other.

    Args:
        tensor: The tensor's shape.
        inner: For each axis of it, the extent of the inner of its two, 1 where it is one axis.
    """

    tensor: tuple[int, ...]
    inner: tuple[int, ...]

    @staticmethod
    def of(shape: Sequence[int], views: Sequence[View]) -> _Image:
        """As the first view that puts something around the tensor takes it."""
        for view in views:
            reads = [piece for piece in view.pieces if isinstance(piece.source, int)]
            if len(reads) == 1 < len(view.pieces):
                inner = tuple(_inner_extent(expr, extent) for expr, extent in zip(reads[0].exprs, shape, strict=True))
                return _Image(tuple(shape), inner)
        return _Image(tuple(shape), (1,) * len(shape))

    @property
    def is_whole(self) -> bool:
        """Whether no axis is two."""
        return all(extent == 1 for extent in self.inner)

    @property
    def shape(self) -> tuple[int, ...]:
        """The image's shape."""
        split = ((n // i, i) if i > 1 else (n,) for n, i in zip(self.tensor, self.inner, strict=True))
        return tuple(extent for extents in split for extent in extents)

    def fold(self) -> View:
        """The tensor as a view of the image."""
        return View.mapped(self.tensor, self.shape, self._split(dims(len(self.tensor))))

    def unfold(self) -> View:
        """The image as a view of the tensor."""
        axes = iter(dims(len(self.shape)))
        exprs = [next(axes) * i + next(axes) if i > 1 else next(axes) for i in self.inner]
        return View.mapped(self.shape, self.tensor, exprs)

    def behind(self, view: View) -> View:
        """A view of the tensor as a view of the image."""
        if self.is_whole:
            return view
        pieces = [
            piece if isinstance(piece.source, Fill) else replace(piece, exprs=self._split(piece.exprs))
            for piece in view.pieces
        ]
        return View.of(view.shape, [self.shape], pieces)

    def _split(self, exprs: Sequence[Expr]) -> tuple[Expr, ...]:
        split = ((expr // i, expr % i) if i > 1 else (expr,) for expr, i in zip(exprs, self.inner, strict=True))
        return tuple(expr for parts in split for expr in parts)


def _inner_extent(expr: Expr, extent: int) -> int:
    """The extent that an axis has within the axis beside it, where one coordinate is both; 1 if it is not."""
    if len(expr.terms) != 2 or any(not isinstance(atom, Dim) for atom, _ in expr.terms):
        return 1
    small, large = sorted(coefficient for _, coefficient in expr.terms)
    return large if small == 1 and large > 1 and extent % large == 0 else 1


def _identity(op: ir.Operation) -> ir.Value:
    """Something to tell operations apart by: their own hash changes with their operands."""
    return op.results[0] if len(op.results) else op


def _frame(view: View) -> _Frame | None:
    """How a view surrounds a box of its source with one number; None for other views."""
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
