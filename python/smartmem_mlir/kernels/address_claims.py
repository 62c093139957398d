"""What kernels claim about addresses: that each is where the group's operations read or write.

A kernel evaluates addresses over its own space, rows and panels for instance. The claim is that the element there is
the one that the operation reads: the kernel's indices, taken to the group's iteration space, then the access of the
operation, are the address again. Lanes that a kernel masks are no part of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from mlir import ir

from smartmem_mlir.index_maps.expr import Expr, delinearize, dim, dims, linearize
from smartmem_mlir.index_maps.movement import reshape
from smartmem_mlir.index_maps.view import View
from smartmem_mlir.kernels.addresses import FIRST_REDUCTION, LANE, SplitAddress, Tiling
from smartmem_mlir.transforms.claims import access_view, claim, is_recorded
from smartmem_mlir.transforms.contraction_group import Read
from smartmem_mlir.transforms.view_ops import shape_of, splat_constant


@dataclass(frozen=True)
class Walk:
    """A box of a kernel's space in which every address is valid.

    Args:
        extents: Of the box.
        kernel: The kernel's indices over the box.
        group: The indices of the group's iteration space over the box.
        space: Extents of the group's iteration space.
    """

    extents: tuple[int, ...]
    kernel: tuple[Expr, ...]
    group: tuple[Expr, ...]
    space: tuple[int, ...]


def walks(tiling: Tiling, group: Sequence[Expr] | None = None, space: Sequence[int] = ()) -> Iterator[Walk]:
    """The boxes of a tiling: all panels that are full, and those that are narrower.

    Args:
        tiling: The tiling.
        group: The indices of the group's iteration space over the space that is tiled, if that is another.
        space: Extents of the group's iteration space in that case.
    """
    count, width = tiling.panels_per_lane_range, tiling.panel_width
    outer = tiling.num_panels // count
    rest = tiling.extents[tiling.lane] - (count - 1) * width
    sections = [(0, count, width)] if rest == width else [(0, count - 1, width), (count - 1, 1, rest)]
    for first, panels, lanes in sections:
        if panels == 0:
            continue
        extents = (tiling.num_rows, outer, panels, lanes, *tiling.reduction_extents)
        kernel = [dim(0), dim(1) * count + dim(2) + first, dim(3)]
        kernel += [dim(4 + i) for i in range(len(tiling.reductions))]
        tiled = tuple(expr.substitute(kernel) for expr in tiling.substitution())
        if group is None:
            yield Walk(extents, tuple(kernel), tiled, tiling.extents)
        else:
            yield Walk(extents, tuple(kernel), tuple(expr.substitute(tiled) for expr in group), tuple(space))


def claim_split(op: ir.Operation, walk: Walk, read: Read, address: SplitAddress) -> None:
    """Claims that a split address is where `read` reads."""
    claim_address(op, walk, read, address.outer + address.inner + dim(LANE) * address.lanes)


def claim_address(op: ir.Operation, walk: Walk, read: Read, address: Expr) -> None:
    """Claims that the row-major position `address` of a tensor, over the kernel's space, is where `read` reads."""
    if is_recorded() and isinstance(read.value.type, ir.RankedTensorType) and splat_constant(read.value) is None:
        shape = shape_of(read.value)
        flat = (prod(shape),)
        after = access_view(walk.extents, flat, [address.substitute(walk.kernel)])
        claim(op, [_enter(walk), access_view(walk.space, shape, read.access), reshape(flat, shape)], after)


def claim_copy(op: ir.Operation, walk: Walk, read: Read, address: Expr, copy: View) -> None:
    """Claims that the element at `address` of a copy, of which `copy` says what it holds, is what `read` reads."""
    if is_recorded():
        place = delinearize(address.substitute(walk.kernel), copy.shape)
        copied = [access_view(walk.extents, copy.shape, place), copy]
        wanted = access_view(walk.space, shape_of(read.value), read.access)
        claim(op, copied, wanted, through=[_enter(walk)])


def claim_rows_of(op: ir.Operation, walk: Walk, read: Read, step: int) -> None:
    """Claims that row r of a walk, its first dimension, stays within the elements from r*step to (r+1)*step."""
    if is_recorded():
        shape = shape_of(read.value)
        count = prod(shape) // step
        row_of = access_view(shape, (count,), [linearize(dims(len(shape)), shape) // step])
        chain = [_enter(walk), access_view(walk.space, shape, read.access), row_of]
        claim(op, chain, access_view(walk.extents, (count,), [dim(0)]))


def _enter(walk: Walk) -> View:
    return access_view(walk.extents, walk.space, walk.group)


def restricted(walk: Walk, reduction: int, start: int, stop: int) -> Walk:
    """The part of a walk in which a reduction runs from `start` to `stop`."""
    axis = FIRST_REDUCTION + 1 + reduction
    moved = [dim(i) + (start if i == axis else 0) for i in range(len(walk.extents))]
    extents = tuple(stop - start if i == axis else extent for i, extent in enumerate(walk.extents))
    kernel = tuple(expr.substitute(moved) for expr in walk.kernel)
    return Walk(extents, kernel, tuple(expr.substitute(moved) for expr in walk.group), walk.space)
