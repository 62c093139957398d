"""Views: tensors that exist only as index maps, one map for each box of the result."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from smartmem_mlir.index_maps.box import Box
from smartmem_mlir.index_maps.errors import IndexMapError, PieceLimitExceeded
from smartmem_mlir.index_maps.expr import Expr, dims
from smartmem_mlir.index_maps.map import IndexMap, evaluate
from smartmem_mlir.index_maps.preimage import MAX_PIECES
from smartmem_mlir.index_maps.simplify import simplify_exprs

Scalar: TypeAlias = bool | int | float

UNREAD = -1
"""In place of an operand's number: nothing reads it, and the view that replaces another does not have it."""


@dataclass(frozen=True, slots=True)
class Fill:
    """A constant element value. Two fills are equal when they are the same number of the same type (NaN equals NaN,
    0.0 differs from -0.0)."""

    value: Scalar = field(compare=False)
    _key: tuple[str, str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_key", (type(self.value).__name__, repr(self.value)))


@dataclass(frozen=True, slots=True)
class Piece:
    """The elements of one box of the result.

    Args:
        box: Where, in the coordinates of the result.
        source: Number of the operand that is read, or the constant that fills the box.
        exprs: One index expression per axis of the operand, over the result's coordinates; empty for a fill.
    """

    box: Box
    source: int | Fill
    exprs: tuple[Expr, ...]

    @property
    def map(self) -> IndexMap:
        """The map from the box to the operand's index space."""
        return IndexMap(self.box, self.exprs)


@dataclass(frozen=True, slots=True)
class View:
    """A result whose elements are elements of operands or constants, given by disjoint pieces that cover it.

    Args:
        shape: Static shape of the result.
        operands: Static shape of each operand; a piece names an operand by its position.
        pieces: Non-empty, disjoint boxes that cover the result, sorted by lower bound.
    """

    shape: tuple[int, ...]
    operands: tuple[tuple[int, ...], ...]
    pieces: tuple[Piece, ...]

    def __post_init__(self) -> None:
        for piece in self.pieces:
            if piece.box.rank != len(self.shape):
                raise IndexMapError(f"piece {piece.box} in a result of shape {list(self.shape)}")
            if isinstance(piece.source, Fill):
                if piece.exprs:
                    raise IndexMapError("a fill has no index expressions")
            elif not 0 <= piece.source < len(self.operands):
                raise IndexMapError(f"piece {piece.box} reads operand {piece.source} of {len(self.operands)}")
            elif len(piece.exprs) != len(self.operands[piece.source]):
                raise IndexMapError(
                    f"piece {piece.box} indexes an operand of rank {len(self.operands[piece.source])} "
                    f"with {len(piece.exprs)} expressions"
                )
            if any(max(expr.dims, default=-1) >= len(self.shape) for expr in piece.exprs):
                raise IndexMapError(f"piece {piece.box} uses a dimension that the result does not have")

    @staticmethod
    def of(shape: Sequence[int], operands: Sequence[Sequence[int]], pieces: Sequence[Piece]) -> View:
        """The view with these pieces, simplified and sorted; empty pieces are dropped.

        Raises:
            IndexMapError: A piece is malformed, or the pieces do not cover the result exactly once.
            PieceLimitExceeded: More than `MAX_PIECES` pieces.
        """
        kept = [p for p in pieces if not p.box.is_empty]
        if len(kept) > MAX_PIECES:
            raise PieceLimitExceeded(f"a view of {len(kept)} pieces, more than {MAX_PIECES}")
        view = View(Box.of(shape).hi, tuple(Box.of(s).hi for s in operands), tuple(kept))
        view.check_cover()
        return view.with_pieces([replace(p, exprs=simplify_exprs(p.exprs, p.box)) for p in kept])

    @staticmethod
    def mapped(shape: Sequence[int], operand: Sequence[int], exprs: Sequence[Expr]) -> View:
        """The view of one operand through one map."""
        return View.of(shape, [operand], [Piece(Box.of(shape), 0, tuple(exprs))])

    @staticmethod
    def identity(shape: Sequence[int]) -> View:
        """The operand itself."""
        return View.mapped(shape, shape, dims(len(shape)))

    @property
    def box(self) -> Box:
        """The result's index space."""
        return Box.of(self.shape)

    def check_cover(self) -> None:
        """Checks that the pieces are disjoint, inside the result, and cover it.

        Raises:
            IndexMapError: They do not.
        """
        whole = self.box
        if sum(piece.box.volume for piece in self.pieces) != whole.volume:
            raise IndexMapError(f"the pieces do not cover a result of shape {list(self.shape)} exactly once")
        if len(self.pieces) == 1 and self.pieces[0].box == whole:
            return
        if any(not whole.contains(piece.box) for piece in self.pieces):
            raise IndexMapError(f"a piece lies outside of the result's shape {list(self.shape)}")
        lo = np.array([piece.box.lo for piece in self.pieces], np.int64)
        hi = np.array([piece.box.hi for piece in self.pieces], np.int64)
        for i in range(len(self.pieces) - 1):
            if np.any(np.all((lo[i + 1 :] < hi[i]) & (lo[i] < hi[i + 1 :]), axis=1)):
                raise IndexMapError(f"piece {self.pieces[i].box} overlaps another piece")

    def check_bounds(self) -> None:
        """Checks that no piece reads outside of its operand, by interval arithmetic and, where that is too loose, ISL.

        Raises:
            IndexMapError: A piece reads out of bounds; the message gives the exact extent of its reads.
        """
        for piece in self.pieces:
            if isinstance(piece.source, Fill):
                continue
            operand = Box.of(self.operands[piece.source])
            if not operand.contains(piece.map.bounds()):
                from smartmem_mlir.index_maps.isl import exact_bounds

                reached = exact_bounds(piece.map)
                if not operand.contains(reached):
                    raise IndexMapError(f"piece {piece.box} reads {reached} of an operand {operand}")

    @property
    def single_map(self) -> IndexMap | None:
        """The map, if the view reads one operand through one map and fills nothing."""
        if len(self.pieces) == 1 and not isinstance(self.pieces[0].source, Fill):
            return self.pieces[0].map
        return None

    def is_identity(self) -> bool:
        """Whether the rules show that the result is operand 0, element by element."""
        if len(self.operands) != 1 or self.shape != self.operands[0]:
            return False
        return all(not isinstance(p.source, Fill) and _is_identity_piece(p) for p in self.pieces)

    def compose(self, inner: View, operand: int = 0) -> View:
        """This view with one operand replaced by the view that produces it; see `compose.compose`."""
        from smartmem_mlir.index_maps.compose import compose

        return compose(self, inner, operand)

    def restrict(self, box: Box) -> View:
        """The part of the result in `box`, as a result of its own (indices start at zero).

        Raises:
            IndexMapError: `box` is not inside the result.
        """
        if box.rank != len(self.shape) or not self.box.contains(box):
            raise IndexMapError(f"{box} is not inside the result's shape {list(self.shape)}")
        moved = [d + lo for d, lo in zip(dims(box.rank), box.lo, strict=True)]
        pieces = []
        for piece in self.pieces:
            common = piece.box.intersect(box)
            if common is not None:
                exprs = tuple(expr.substitute(moved) for expr in piece.exprs)
                pieces.append(replace(piece, box=_shifted(common, box.lo), exprs=exprs))
        return View.of(box.extents, self.operands, pieces)

    def share_operands(self, keys: Sequence[Hashable]) -> tuple[View, tuple[int, ...]]:
        """The view with operands of equal key made one and operands that nothing reads dropped.

        Args:
            keys: One per operand, equal exactly for operands that are the same tensor.

        Returns:
            The view, and for each of its operands the position of that operand in this view.
        """
        if len(keys) != len(self.operands):
            raise IndexMapError(f"{len(keys)} keys for {len(self.operands)} operands")
        used = {keys[p.source] for p in self.pieces if not isinstance(p.source, Fill)}
        first: dict[Hashable, int] = {}
        kept: list[int] = []
        for at, key in enumerate(keys):
            if key in used and key not in first:
                first[key] = len(kept)
                kept.append(at)
        pieces = tuple(
            p if isinstance(p.source, Fill) else replace(p, source=first[keys[p.source]]) for p in self.pieces
        )
        return View(self.shape, tuple(self.operands[at] for at in kept), pieces), tuple(kept)

    def with_pieces(self, pieces: Sequence[Piece]) -> View:
        """The same result and operands with other pieces."""
        return View(self.shape, self.operands, tuple(sorted(pieces, key=lambda p: (p.box.lo, p.box.hi))))

    def map_exprs(self, function: Callable[[IndexMap], IndexMap]) -> View:
        """The view with each piece's map replaced by `function` of it."""
        return self.with_pieces([replace(piece, exprs=function(piece.map).exprs) for piece in self.pieces])

    def __str__(self) -> str:
        from smartmem_mlir.index_maps.text import print_view

        return print_view(self)


def apply(view: View, arrays: Sequence[npt.NDArray[Any]], dtype: npt.DTypeLike | None = None) -> npt.NDArray[Any]:
    """The oracle: the view's result, gathered element by element with NumPy.

    Args:
        view: Any view.
        arrays: One per operand, with the operand's shape.
        dtype: The result's; default: the first array's, float32 if there is none.

    Raises:
        IndexMapError: An array's shape is not its operand's, or a piece reads out of bounds.
    """
    if tuple(array.shape for array in arrays) != view.operands:
        raise IndexMapError(f"arrays {[a.shape for a in arrays]} for operands {list(view.operands)}")
    if dtype is None:
        dtype = arrays[0].dtype if arrays else np.float32
    result = np.empty(view.shape, dtype)
    written = np.zeros(view.shape, np.bool_)
    for piece in view.pieces:
        at = tuple(slice(lo, hi) for lo, hi in zip(piece.box.lo, piece.box.hi, strict=True))
        if np.any(written[at]):
            raise IndexMapError(f"piece {piece.box} overlaps another piece")
        written[at] = True
        if isinstance(piece.source, Fill):
            result[at] = piece.source.value
            continue
        indices = evaluate(piece.map)
        for index, extent in zip(indices, view.operands[piece.source], strict=True):
            # NumPy reads negative indices from the end; here they are errors.
            if index.size and (index.min() < 0 or index.max() >= extent):
                raise IndexMapError(f"piece {piece.box} reads [{index.min()}, {index.max()}] of {extent}")
        result[at] = arrays[piece.source][tuple(indices)]
    if not np.all(written):
        raise IndexMapError("the pieces do not cover the result")
    return result


def _shifted(box: Box, by: tuple[int, ...]) -> Box:
    return Box(
        tuple(a - b for a, b in zip(box.lo, by, strict=True)), tuple(a - b for a, b in zip(box.hi, by, strict=True))
    )


def _is_identity_piece(piece: Piece) -> bool:
    return piece.map.is_identity()
