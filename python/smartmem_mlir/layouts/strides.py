"""How a loop walks a tensor that is stored in some order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from smartmem_mlir.index_maps.box import Box
from smartmem_mlir.index_maps.expr import Dim, Expr, linearize
from smartmem_mlir.index_maps.simplify import simplify_exprs
from smartmem_mlir.layouts.graph import Access, Order


@dataclass(frozen=True)
class Walk:
    """A tensor's addresses over the dimensions of a loop nest.

    Args:
        strides: Elements between neighbours along each dimension; None where the distance varies.
        run: Elements that follow each other in memory while dimensions count, the loop's innermost first.
    """

    strides: tuple[int | None, ...]
    run: int


@lru_cache(maxsize=1 << 16)
def walk(
    access: Access, shape: tuple[int, ...], order: Order, extents: tuple[int, ...], inner: tuple[int, ...]
) -> Walk:
    """How loops walk a tensor.

    Args:
        access: Coordinates over the loops' dimensions.
        shape: The tensor's shape as written.
        order: How it is stored.
        extents: The loops' extents.
        inner: The dimensions by which runs are counted, innermost first.
    """
    address = _address(access, shape, order, extents)
    strides = [_stride(address, d) for d in range(len(extents))]
    run = 1
    for d in inner:
        if extents[d] == 1:
            continue
        if strides[d] != run:
            run *= _broken_run(address, d, extents[d]) if strides[d] is None and run == 1 else 1
            break
        run *= extents[d]
    return Walk(tuple(strides), run)


def is_linear(exprs: Access, shape: tuple[int, ...], order: Order, extents: Sequence[int], result: Order) -> bool:
    """Whether a map reads memory exactly in the order in which its domain, stored as `result`, lies there."""
    read = _address(exprs, shape, order, tuple(extents))
    domain = tuple(Expr(0, ((Dim(d), 1),)) for d in range(len(extents)))
    written = _address(domain, tuple(extents), result, tuple(extents))
    return read.terms == written.terms


@lru_cache(maxsize=1 << 16)
def _address(access: Access, shape: tuple[int, ...], order: Order, extents: tuple[int, ...]) -> Expr:
    stored = linearize([access[axis] for axis in order], [shape[axis] for axis in order])
    return simplify_exprs([stored], Box.of(extents))[0]


def _stride(address: Expr, d: int) -> int | None:
    plain = address.coefficient(Dim(d))
    return plain if d not in (address - Expr(0, ((Dim(d), 1),)) * plain).dims else None


def _broken_run(address: Expr, d: int, extent: int) -> int:
    """Elements in a row along a dimension that the address takes apart: the least divisor, if it counts singly."""
    pieces = [atom.value for atom, _ in address.terms if not isinstance(atom, Dim) and d in atom.arg.dims]
    counts = [c for atom, c in address.terms if not isinstance(atom, Dim) and d in atom.arg.dims]
    return min(*pieces, extent) if pieces and 1 in map(abs, counts) else 1
