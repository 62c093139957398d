"""Index maps: several quasi-affine expressions over one box of inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from smartmem_mlir.index_maps.box import Box, Ranges
from smartmem_mlir.index_maps.errors import IndexMapError
from smartmem_mlir.index_maps.expr import Dim, Expr, FloorDiv, dims
from smartmem_mlir.index_maps.simplify import Simplifier, simplify_exprs

IndexArray = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class IndexMap:
    """A function from the points of `domain` (n axes) to integer points with `len(exprs)` coordinates.

    Args:
        domain: The inputs for which the map is defined; simplification may use these bounds.
        exprs: One expression per result, over dimensions `d0 .. d(n-1)`.
    """

    domain: Box
    exprs: tuple[Expr, ...]

    def __post_init__(self) -> None:
        for expr in self.exprs:
            if max(expr.dims, default=-1) >= self.domain.rank:
                raise IndexMapError(f"{expr!r} uses a dimension that the domain {self.domain} does not have")

    @staticmethod
    def of(extents: Sequence[int], exprs: Sequence[Expr]) -> IndexMap:
        """The map with these expressions on the index space of a tensor of shape `extents`."""
        return IndexMap(Box.of(extents), tuple(exprs))

    @staticmethod
    def identity(extents: Sequence[int]) -> IndexMap:
        """`(d0, d1, ...) -> (d0, d1, ...)` on the index space of a tensor."""
        return IndexMap.of(extents, dims(len(extents)))

    @property
    def num_inputs(self) -> int:
        """Number of input dimensions."""
        return self.domain.rank

    @property
    def num_results(self) -> int:
        """Number of results."""
        return len(self.exprs)

    def compose(self, inner: IndexMap) -> IndexMap:
        """`x -> self(inner(x))` on `inner`'s domain, simplified.

        Raises:
            IndexMapError: Ranks differ, or it is not clear that `inner` stays within this map's domain.
        """
        if inner.num_results != self.num_inputs:
            raise IndexMapError(f"cannot feed {inner.num_results} results to a map of {self.num_inputs} inputs")
        if not inner.domain.is_empty and not self.domain.contains(inner.bounds()):
            raise IndexMapError(f"the inner map reaches {inner.bounds()}, outside of the domain {self.domain}")
        exprs = tuple(expr.substitute(inner.exprs) for expr in self.exprs)
        return IndexMap(inner.domain, exprs).simplify()

    def simplify(self) -> IndexMap:
        """The same function with cheaper expressions (rules of `simplify.py`).

        Raises:
            IndexOverflowError: A value inside the map may leave int64.
        """
        exprs = simplify_exprs(self.exprs, self.domain)
        return self if exprs == self.exprs else IndexMap(self.domain, exprs)

    def restrict(self, domain: Box) -> IndexMap:
        """The map on a smaller box, simplified there.

        Raises:
            IndexMapError: `domain` is not inside this map's domain.
        """
        if domain.rank != self.num_inputs or not self.domain.contains(domain):
            raise IndexMapError(f"{domain} is not inside {self.domain}")
        return IndexMap(domain, simplify_exprs(self.exprs, domain))

    def product(self, other: IndexMap) -> IndexMap:
        """`(x, y) -> (self(x), other(y))`."""
        shifted = tuple(expr.shift_dims(self.num_inputs) for expr in other.exprs)
        return IndexMap(self.domain.product(other.domain), self.exprs + shifted)

    def bounds(self) -> Box:
        """A box that contains every result. Sound; `isl.exact_bounds` is tight.

        Raises:
            IndexMapError: The domain is empty, so there is no result to bound.
        """
        if self.domain.is_empty:
            raise IndexMapError("a map over an empty domain has no bounds")
        ranges = Ranges(self.domain)
        intervals = [ranges.of(expr) for expr in self.exprs]
        return Box(tuple(lo for lo, _ in intervals), tuple(hi + 1 for _, hi in intervals))

    def is_identity(self) -> bool:
        """Whether the rules show that the map returns its argument."""
        if self.num_inputs != self.num_results:
            return False
        simplifier = Simplifier(self.domain)
        return all(simplifier.equal(expr, d) for expr, d in zip(self.exprs, dims(self.num_inputs), strict=True))

    def __call__(self, *point: int) -> tuple[int, ...]:
        """The results at one point, in exact integer arithmetic."""
        if len(point) != self.num_inputs:
            raise IndexMapError(f"{len(point)} indices for a map of {self.num_inputs} inputs")
        args = [Expr(value) for value in point]
        return tuple(expr.substitute(args).const for expr in self.exprs)

    def __str__(self) -> str:
        from smartmem_mlir.index_maps.text import print_map

        return print_map(self)


def evaluate(index_map: IndexMap, box: Box | None = None) -> list[IndexArray]:
    """The oracle: the value of every result at every point of `box` (default: the domain), by NumPy.

    Shares nothing with the rules or with ISL. Each returned int64 array has the box's extents as its shape.

    Raises:
        IndexOverflowError: A value may leave int64.
    """
    box = index_map.domain if box is None else box
    if box.is_empty:
        return [np.zeros(box.extents, np.int64) for _ in index_map.exprs]
    Ranges(box).check_int64(index_map.exprs)
    axes = np.ogrid[tuple(slice(lo, hi) for lo, hi in zip(box.lo, box.hi, strict=True))]
    memo: dict[Expr, IndexArray] = {}

    def visit(expr: Expr) -> IndexArray:
        if expr not in memo:
            total = np.asarray(expr.const, np.int64)
            for atom, coef in expr.terms:
                if isinstance(atom, Dim):
                    value = np.asarray(axes[atom.index], np.int64)
                elif isinstance(atom, FloorDiv):
                    value = np.floor_divide(visit(atom.arg), atom.value)
                else:
                    value = np.remainder(visit(atom.arg), atom.value)
                total = total + coef * value
            memo[expr] = total
        return memo[expr]

    return [np.broadcast_to(visit(expr), box.extents) for expr in index_map.exprs]
