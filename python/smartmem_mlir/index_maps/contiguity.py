"""How a map walks memory: strides and run lengths, on which the choice between index arithmetic and a copy rests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

from smartmem_mlir.index_maps.box import Box
from smartmem_mlir.index_maps.errors import IndexMapError
from smartmem_mlir.index_maps.expr import ZERO, Dim, Expr, dim, dims
from smartmem_mlir.index_maps.map import IndexMap
from smartmem_mlir.index_maps.simplify import Simplifier, simplify_exprs


@dataclass(frozen=True, slots=True)
class Run:
    """Along `axis`, addresses advance by `stride` within each block of `length` positions.

    Blocks start at the lower bound of the axis plus multiples of `length`; the last one may be shorter. The length is
    the greatest that holds for every value of the other axes and for every block; a rotation, whose break falls
    inside a block, therefore has length 1 (`merge.split_wraps` first, to see its two long runs).

    Args:
        axis: Input dimension.
        stride: Elements between neighbours; 0 repeats one element; for length 1 it is 0.
        length: Positions in a block, at least 1.
        multiple: Every block starts at an address that is a multiple of this.
    """

    axis: int
    stride: int
    length: int
    multiple: int


def row_major_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Elements between neighbours along each axis of a dense tensor."""
    strides = [1] * len(shape)
    for axis in reversed(range(len(shape) - 1)):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    return tuple(strides)


def address(index_map: IndexMap, strides: Sequence[int]) -> Expr:
    """The address in elements that a map reads, simplified over its domain.

    Args:
        index_map: A map to the index space of a tensor.
        strides: Elements between neighbours along each axis of that tensor (`row_major_strides` for a dense one).
    """
    if len(strides) != index_map.num_results:
        raise IndexMapError(f"{len(strides)} strides for a map of {index_map.num_results} results")
    total = sum((expr * stride for expr, stride in zip(index_map.exprs, strides, strict=True)), ZERO)
    return simplify_exprs([total], index_map.domain)[0]


def run_along(index_map: IndexMap, strides: Sequence[int], axis: int) -> Run:
    """The longest blocks along one input axis within which the address is linear.

    Args:
        index_map: A map to the index space of a tensor, over a non-empty domain.
        strides: As for `address`.
        axis: Input dimension to walk along.
    """
    where = address(index_map, strides)
    box = index_map.domain
    lo, extent = box.lo[axis], box.extents[axis]
    for length in _candidates(where, axis, extent):
        found = _blocks(where, box, axis, length)
        if found is not None:
            start, stride = found
            return Run(axis, stride if length > 1 else 0, length, gcd(start.const, *(c for _, c in start.terms)))
    raise AssertionError(f"blocks of one position along d{axis} from {lo} are always linear")


def fastest_axis(index_map: IndexMap, strides: Sequence[int]) -> Run | None:
    """The input axis along which the most neighbours are neighbours in memory (stride 1); None if there is none.

    Of equally long runs the innermost axis wins, because it needs no interchange of loops.
    """
    runs = [run_along(index_map, strides, axis) for axis in range(index_map.num_inputs)]
    unit = [run for run in runs if run.stride == 1 and run.length > 1]
    return max(unit, key=lambda run: (run.length, run.axis), default=None)


def contiguous_elements(index_map: IndexMap, strides: Sequence[int]) -> int:
    """How many consecutive elements of the result, in row-major order, are consecutive in memory.

    The result falls into copies of that many elements. Runs that fill an axis continue on the axis before it: the
    identity gives the whole volume, a transpose of the last two axes gives 1.
    """
    total = 1
    for axis in reversed(range(index_map.num_inputs)):
        extent = index_map.domain.extents[axis]
        if extent == 1:
            continue
        run = run_along(index_map, strides, axis)
        if run.stride != total:
            break
        # Blocks must tile the axis, or the last one of each row would be cut short.
        whole = gcd(run.length, extent)
        total *= whole
        if whole < extent:
            break
    return total


def vector_width(
    index_map: IndexMap,
    strides: Sequence[int],
    axis: int,
    widths: Sequence[int] = (16, 8, 4, 2),
    *,
    aligned: bool = False,
) -> int:
    """The first of `widths` that loads along `axis` can have throughout; 1 if none.

    Args:
        index_map: A map to the index space of a tensor.
        strides: As for `address`.
        axis: Input dimension that the lanes run along; its extent must be a multiple of the width, or tails remain.
        widths: Candidates, widest first.
        aligned: Also require every vector to start at a multiple of its width.
    """
    run = run_along(index_map, strides, axis)
    if run.stride != 1:
        return 1
    extent = index_map.domain.extents[axis]
    for width in widths:
        whole = run.length % width == 0 and extent % width == 0
        if whole and (not aligned or run.multiple % width == 0):
            return width
    return 1


def _candidates(where: Expr, axis: int, extent: int) -> list[int]:
    """Block lengths at which the address may be linear, longest first: the places where its divisions step."""
    places = {extent, 1}
    for sub in where.subexprs():
        for atom, _ in sub.terms:
            if not isinstance(atom, Dim) and axis in atom.arg.dims:
                places |= {atom.value // gcd(atom.value, coef) for _, coef in atom.arg.terms}
                places |= {place * atom.value for place in places if place * atom.value < extent}
    places |= {gcd(a, b) for a in places for b in places}
    return sorted((place for place in places if place <= extent), reverse=True)


def _blocks(where: Expr, box: Box, axis: int, length: int) -> tuple[Expr, int] | None:
    """`(address of a block's start, stride)` with d_axis = lo + length*block + position; None if not linear."""
    lo, extent = box.lo[axis], box.extents[axis]
    position = dim(box.rank)
    parts = list(dims(box.rank))
    parts[axis] = parts[axis] * length + position + lo
    # The last block may reach past the box; what holds there and in the box holds in the box.
    split = box.with_axis(axis, 0, -(-extent // length)).product(Box.of([length]))
    simplified = Simplifier(split)(where.substitute(parts))
    stride = 0
    for atom, coef in simplified.terms:
        if isinstance(atom, Dim) and atom.index == box.rank:
            stride = coef
        elif box.rank in (frozenset((atom.index,)) if isinstance(atom, Dim) else atom.arg.dims):
            return None
    return simplified - position * stride, stride
