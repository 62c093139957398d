"""Addresses of a tiled contraction, split into what changes where.

A kernel computes tiles of rows by lanes and sums over the reduction inside a tile. Each operand's address must then be
a sum of one part that is fixed for a row and a panel, one that moves with the reduction, and one that counts lanes.
Whatever layout an operand has, it is this sum that the generated code evaluates: a packed weight, a gathered window and
a plain row-major matrix differ in their expressions only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from smartmem_mlir.index_maps.box import Box
from smartmem_mlir.index_maps.expr import Dim, Expr, delinearize, dim
from smartmem_mlir.index_maps.simplify import simplify_exprs

ROW, PANEL, LANE, FIRST_REDUCTION = 0, 1, 2, 3
"""Numbers of the dimensions that a split address is over; reductions follow in order."""


@dataclass(frozen=True)
class Tiling:
    """How the iteration space of a contraction is walked.

    Args:
        extents: The iteration space.
        rows: Parallel dimensions walked as rows, outermost first.
        panels: Parallel dimensions that choose a panel of the right-hand side, outermost first, without the lanes.
        lane: The dimension whose elements fill vectors.
        reductions: Dimensions summed over, outermost first.
        panel_width: Lanes of one panel.
    """

    extents: tuple[int, ...]
    rows: tuple[int, ...]
    panels: tuple[int, ...]
    lane: int
    reductions: tuple[int, ...]
    panel_width: int

    @property
    def num_rows(self) -> int:
        """Rows of the whole kernel."""
        return prod(self.extents[d] for d in self.rows)

    @property
    def panels_per_lane_range(self) -> int:
        """Panels that the lane dimension is cut into; the last may be narrower."""
        return -(-self.extents[self.lane] // self.panel_width)

    @property
    def num_panels(self) -> int:
        """Panels of the whole kernel."""
        return prod(self.extents[d] for d in self.panels) * self.panels_per_lane_range

    @property
    def reduction_extents(self) -> tuple[int, ...]:
        """Trip counts of the loops over the reduction."""
        return tuple(self.extents[d] for d in self.reductions)

    @property
    def box(self) -> Box:
        """The space that split addresses are over."""
        return Box.of((self.num_rows, self.num_panels, self.panel_width, *self.reduction_extents))

    def substitution(self) -> list[Expr]:
        """Each dimension of the iteration space over row, panel, lane and reductions."""
        result = [Expr(0)] * len(self.extents)
        for d, expr in zip(self.rows, delinearize(dim(ROW), self._of(self.rows)), strict=True):
            result[d] = expr
        outer = (*self._of(self.panels), self.panels_per_lane_range)
        *panels, in_range = delinearize(dim(PANEL), outer)
        for d, expr in zip(self.panels, panels, strict=True):
            result[d] = expr
        result[self.lane] = in_range * self.panel_width + dim(LANE)
        for i, d in enumerate(self.reductions):
            result[d] = dim(FIRST_REDUCTION + i)
        return result

    def _of(self, dims: Sequence[int]) -> tuple[int, ...]:
        return tuple(self.extents[d] for d in dims)


@dataclass(frozen=True)
class SplitAddress:
    """`outer(row, panel) + inner(reductions) + lanes * lane`.

    Args:
        outer: Fixed for a row and a panel.
        inner: Moves with the reduction.
        lanes: Distance between the elements of successive lanes: 1 where they are adjacent, 0 where all lanes read
            the same one.
    """

    outer: Expr
    inner: Expr
    lanes: int

    @property
    def row_stride(self) -> int | None:
        """Distance between the elements of successive rows, None when it varies."""
        coefficient = self.outer.coefficient(Dim(ROW))
        rest = self.outer - dim(ROW) * coefficient
        return None if ROW in rest.dims else coefficient


@lru_cache(maxsize=1024)
def split_address(address: Expr, tiling: Tiling) -> SplitAddress | None:
    """Splits an address over the iteration space; None when it is no such sum."""
    (tiled,) = simplify_exprs([address.substitute(tiling.substitution())], tiling.box)
    outer, inner, lanes = Expr(tiled.const), Expr(0), 0
    for atom, coefficient in tiled.terms:
        term = Expr(0, ((atom, coefficient),))
        if term.dims <= {ROW, PANEL}:
            outer = outer + term
        elif min(term.dims) >= FIRST_REDUCTION:
            inner = inner + term
        elif atom is Dim(LANE):
            lanes = coefficient
        else:
            return None
    return SplitAddress(outer, inner, lanes)
