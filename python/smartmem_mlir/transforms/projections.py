"""Accesses whose expressions are single dimensions, the other way round."""

from __future__ import annotations

from collections.abc import Sequence

from smartmem_mlir.index_maps.expr import ZERO, Dim, Expr, dim
from smartmem_mlir.transforms.structured import Access


def inverse_of_projection(access: Access, extents: Sequence[int], shape: Sequence[int]) -> list[Expr] | None:
    """The iteration space over the result's coordinates, when each dimension is one coordinate (or has one value)."""
    inverse: list[Expr | None] = [ZERO if extent == 1 else None for extent in extents]
    for coordinate, (expr, size) in enumerate(zip(access, shape, strict=True)):
        if size == 1:
            continue
        atom = expr.single_atom
        if not isinstance(atom, Dim) or inverse[atom.index] is not None:
            return None
        inverse[atom.index] = dim(coordinate)
    known = [expr for expr in inverse if expr is not None]
    return known if len(known) == len(inverse) else None
