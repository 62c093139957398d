"""One constructor for each data-movement operator: shapes and parameters in, a :class:`View` out.

Semantics are NumPy's where NumPy has the operator (the tests execute both), ONNX's or PyTorch's where it has not.
Sizes are static; axes may be negative as in NumPy. Every constructor raises IndexMapError on parameters that do not
fit the shape. Windows and pads (`im2col`, `pad`, `depth_to_space`, ...) are in `movement_windows.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import numpy.typing as npt

from smartmem_mlir.index_maps.box import Box
from smartmem_mlir.index_maps.compose import compose
from smartmem_mlir.index_maps.errors import IndexMapError, PieceLimitExceeded
from smartmem_mlir.index_maps.expr import ZERO, Expr, const, dim, dims
from smartmem_mlir.index_maps.expr import delinearize as delinearize
from smartmem_mlir.index_maps.expr import linearize as linearize
from smartmem_mlir.index_maps.preimage import MAX_PIECES
from smartmem_mlir.index_maps.view import Piece, View

Shape = Sequence[int]


def normalize_axis(axis: int, rank: int) -> int:
    """`axis` in [0, rank), counting negative ones from the end."""
    if not -rank <= axis < rank:
        raise IndexMapError(f"axis {axis} is out of range for rank {rank}")
    return axis % rank


def transpose(shape: Shape, permutation: Sequence[int]) -> View:
    """Result axis i is operand axis `permutation[i]` (NumPy and ONNX convention)."""
    axes = [normalize_axis(axis, len(shape)) for axis in permutation]
    if sorted(axes) != list(range(len(shape))):
        raise IndexMapError(f"{list(permutation)} is not a permutation of {len(shape)} axes")
    exprs = [ZERO] * len(shape)
    for result_axis, axis in enumerate(axes):
        exprs[axis] = dim(result_axis)
    return View.mapped([shape[axis] for axis in axes], shape, exprs)


def reshape(shape: Shape, new_shape: Shape) -> View:
    """The same elements in row-major order under another shape (all sizes given).

    Indices depend on each other only within the shortest runs of axes with equal products (identity, split, merge:
    paper section 3.2.1), so no address of the whole tensor is formed.
    """
    old, new = Box.of(shape).hi, Box.of(new_shape).hi
    if prod(old) != prod(new):
        raise IndexMapError(f"cannot reshape {list(old)} to {list(new)}: different numbers of elements")
    if prod(old) == 0:
        return View(new, (old,), ())
    exprs: list[Expr] = []
    for old_axes, new_axes in reshape_groups(old, new):
        address = linearize([dim(axis) for axis in new_axes], [new[axis] for axis in new_axes])
        exprs += delinearize(address, [old[axis] for axis in old_axes])
    return View.mapped(new, old, exprs)


def reshape_groups(old: Shape, new: Shape) -> list[tuple[range, range]]:
    """Shortest consecutive runs of axes `(old, new)` with equal products, for shapes of equal non-zero volume.

    Axes of size 1 join the run before them; at the very front, the first run.
    """
    groups: list[tuple[range, range]] = []
    i = j = 0
    while i < len(old) or j < len(new):
        start_i, start_j = i, j
        p, q = 1, 1
        if i < len(old):
            p, i = old[i], i + 1
        if j < len(new):
            q, j = new[j], j + 1
        while p != q:
            if p < q:
                p, i = p * old[i], i + 1
            else:
                q, j = q * new[j], j + 1
        rest_is_ones = all(e == 1 for e in (*old[i:], *new[j:]))
        if rest_is_ones:
            i, j = len(old), len(new)
        groups.append((range(start_i, i), range(start_j, j)))
    return groups


def expand_dims(shape: Shape, axes: Sequence[int]) -> View:
    """Inserts axes of size 1 at these positions of the result (ONNX Unsqueeze)."""
    rank = len(shape) + len(axes)
    at = {normalize_axis(axis, rank) for axis in axes}
    if len(at) != len(axes):
        raise IndexMapError(f"axes {list(axes)} repeat")
    kept = [axis for axis in range(rank) if axis not in at]
    extents = [1] * rank
    for axis, extent in zip(kept, shape, strict=True):
        extents[axis] = extent
    return View.mapped(extents, shape, [dim(axis) for axis in kept])


def squeeze(shape: Shape, axes: Sequence[int]) -> View:
    """Drops axes of size 1."""
    gone = {normalize_axis(axis, len(shape)) for axis in axes}
    if any(shape[axis] != 1 for axis in gone):
        raise IndexMapError(f"axes {sorted(gone)} of {list(shape)} are not all of size 1")
    kept = [axis for axis in range(len(shape)) if axis not in gone]
    exprs = [ZERO] * len(shape)
    for position, axis in enumerate(kept):
        exprs[axis] = dim(position)
    return View.mapped([shape[axis] for axis in kept], shape, exprs)


def slice_(shape: Shape, starts: Sequence[int], sizes: Sequence[int], steps: Sequence[int] | None = None) -> View:
    """`sizes[i]` elements along axis i from `starts[i]` on, every `steps[i]`-th; a negative step goes backwards.

    Starts are positions, not Python's negative indices: element k is `starts[i] + k * steps[i]`, all in bounds.
    """
    steps = [1] * len(shape) if steps is None else steps
    if not len(shape) == len(starts) == len(sizes) == len(steps):
        raise IndexMapError(f"slice of rank {len(starts)} of a tensor of rank {len(shape)}")
    for extent, start, size, step in zip(shape, starts, sizes, steps, strict=True):
        last = start + (size - 1) * step
        if step == 0 or size < 0 or (size and not (0 <= start < extent and 0 <= last < extent)):
            raise IndexMapError(f"slice of {size} from {start} by {step} of an axis of {extent}")
    return View.mapped(sizes, shape, [d * k + s for d, k, s in zip(dims(len(shape)), steps, starts, strict=True)])


def split(shape: Shape, sizes: Sequence[int], axis: int) -> list[View]:
    """Consecutive parts along an axis."""
    axis = normalize_axis(axis, len(shape))
    if sum(sizes) != shape[axis] or any(size < 0 for size in sizes):
        raise IndexMapError(f"parts {list(sizes)} of an axis of {shape[axis]}")
    views = []
    start = 0
    for size in sizes:
        starts = [0] * len(shape)
        starts[axis] = start
        views.append(slice_(shape, starts, [*shape[:axis], size, *shape[axis + 1 :]]))
        start += size
    return views


def concat(shapes: Sequence[Shape], axis: int) -> View:
    """The operands one after another along an axis; operand k has shape `shapes[k]`."""
    if not shapes:
        raise IndexMapError("concat of no operands")
    rank = len(shapes[0])
    axis = normalize_axis(axis, rank)
    for shape in shapes:
        if len(shape) != rank or any(shape[i] != shapes[0][i] for i in range(rank) if i != axis):
            raise IndexMapError(f"cannot concat {[list(s) for s in shapes]} along axis {axis}")
    whole = Box.of([*shapes[0][:axis], sum(shape[axis] for shape in shapes), *shapes[0][axis + 1 :]])
    pieces = []
    start = 0
    for operand, shape in enumerate(shapes):
        exprs = list(dims(rank))
        exprs[axis] = exprs[axis] - start
        pieces.append(Piece(whole.with_axis(axis, start, start + shape[axis]), operand, tuple(exprs)))
        start += shape[axis]
    return View.of(whole.hi, shapes, pieces)


def broadcast(shape: Shape, new_shape: Shape) -> View:
    """NumPy broadcasting to a larger shape: axes align at the end, size 1 is repeated, new axes come first."""
    missing = len(new_shape) - len(shape)
    if missing < 0 or any(e not in (1, n) for e, n in zip(shape, new_shape[missing:], strict=True)):
        raise IndexMapError(f"cannot broadcast {list(shape)} to {list(new_shape)}")
    exprs = [dim(missing + axis) if extent == new_shape[missing + axis] else ZERO for axis, extent in enumerate(shape)]
    return View.mapped(new_shape, shape, exprs)


def roll(shape: Shape, shifts: Sequence[int], axes: Sequence[int]) -> View:
    """Cyclic shift: element i of an axis moves to (i + shift) mod extent. One piece; shifts on one axis add up."""
    exprs = list(dims(len(shape)))
    for shift, axis in zip(shifts, axes, strict=True):
        axis = normalize_axis(axis, len(shape))
        if shape[axis]:
            exprs[axis] = (exprs[axis] - shift) % shape[axis]
    return View.mapped(shape, shape, exprs)


def flip(shape: Shape, axes: Sequence[int]) -> View:
    """Reverses axes."""
    exprs = list(dims(len(shape)))
    for axis in {normalize_axis(axis, len(shape)) for axis in axes}:
        exprs[axis] = shape[axis] - 1 - exprs[axis]
    return View.mapped(shape, shape, exprs)


def tile(shape: Shape, repeats: Sequence[int]) -> View:
    """The whole tensor again and again, `repeats[i]` times along axis i (ONNX Tile; ranks are equal)."""
    if len(shape) != len(repeats):
        raise IndexMapError(f"{len(repeats)} repeats for rank {len(shape)}")
    result = [extent * times for extent, times in zip(shape, repeats, strict=True)]
    if 0 in result:
        return View(Box.of(result).hi, (Box.of(shape).hi,), ())
    return View.mapped(result, shape, [d % extent for d, extent in zip(dims(len(shape)), shape, strict=True)])


def repeat(shape: Shape, times: int, axis: int) -> View:
    """Each element `times` times in a row along an axis (np.repeat; nearest-neighbour upsampling by an integer)."""
    axis = normalize_axis(axis, len(shape))
    if times < 0:
        raise IndexMapError(f"cannot repeat {times} times")
    result = [*shape[:axis], shape[axis] * times, *shape[axis + 1 :]]
    exprs = list(dims(len(shape)))
    if times:
        exprs[axis] = exprs[axis] // times
    return View.mapped(result, shape, exprs)


def gather(shape: Shape, indices: npt.NDArray[np.integer], axis: int, *, max_pieces: int = 16) -> View:
    """Reads constant positions along an axis (np.take; negative indices count from the end).

    Indices on a lattice (arange, strided, reversed, windows, relative positions: a sum of strides times mixed-radix
    digits of the position) give one piece; otherwise each run in arithmetic progression is a piece.

    Raises:
        PieceLimitExceeded: More than `max_pieces` runs: the table has no structure worth index arithmetic.
    """
    axis = normalize_axis(axis, len(shape))
    values = np.asarray(indices).astype(np.int64).reshape(-1)
    extent = shape[axis]
    if values.size and not (-extent <= values.min() and values.max() < extent):
        raise IndexMapError(f"index {values[np.argmax(np.abs(values))]} is out of range for an axis of {extent}")
    values = np.where(values < 0, values + extent, values)
    index_shape = np.shape(indices)
    result = [*shape[:axis], *index_shape, *shape[axis + 1 :]]
    flat = _gather_flat(shape, values, axis, max_pieces)
    if len(index_shape) == 1 or flat.box.is_empty:
        return flat if len(index_shape) == 1 else View(Box.of(result).hi, flat.operands, ())
    return compose(reshape(flat.shape, result), flat)


def _gather_flat(shape: Shape, values: npt.NDArray[np.int64], axis: int, max_pieces: int) -> View:
    whole = Box.of([*shape[:axis], len(values), *shape[axis + 1 :]])
    exprs = list(dims(len(shape)))
    lattice = _lattice(values)
    if lattice is not None:
        base, digits = lattice
        exprs[axis] = const(base)
        for stride, span, radix in digits:
            exprs[axis] = exprs[axis] + dim(axis) // span % radix * stride
        return View.of(whole.hi, [shape], [Piece(whole, 0, tuple(exprs))])
    pieces = []
    for start, end, step in _progressions(values):
        exprs[axis] = (dim(axis) - start) * step + int(values[start])
        pieces.append(Piece(whole.with_axis(axis, start, end), 0, tuple(exprs)))
    if len(pieces) > min(max_pieces, MAX_PIECES):
        raise PieceLimitExceeded(
            f"gather with {len(values)} constant indices in {len(pieces)} runs, more than {max_pieces}"
        )
    return View.of(whole.hi, [shape], pieces)


def _lattice(values: npt.NDArray[np.int64]) -> tuple[int, list[tuple[int, int, int]]] | None:
    """`(base, [(stride, span, radix), ...])` with values[i] = base + sum(stride * (i // span % radix)), or None."""
    digits: list[tuple[int, int, int]] = []
    span = 1
    while len(values) > 1:
        steps = np.diff(values)
        breaks = np.flatnonzero(steps != steps[0])
        radix = len(values) if not len(breaks) else int(breaks[0]) + 1
        if radix == 1 or len(values) % radix:
            return None
        rows = values.reshape(-1, radix)
        if np.any(np.diff(rows, axis=1) != steps[0]):
            return None
        if steps[0]:
            digits.append((int(steps[0]), span, radix))
        values, span = rows[:, 0], span * radix
    return (int(values[0]) if len(values) else 0), digits


def _progressions(values: npt.NDArray[np.int64]) -> list[tuple[int, int, int]]:
    """Greedy maximal runs `(start, end, step)` in arithmetic progression."""
    runs = []
    start = 0
    while start < len(values):
        end, step = start + 1, 0
        if end < len(values):
            step = int(values[end] - values[start])
            while end < len(values) and values[end] - values[end - 1] == step:
                end += 1
        runs.append((start, end, step))
        start = end
    return runs
