"""Making accesses strided: splitting an iteration space until no division is left, and reading a tensor by its digits.

A contraction's operand read through `(m, k) -> (m floordiv 49, k floordiv 32, m mod 49, k mod 32)` is no structured
access: no vectoriser tiles a floor division. Over the iteration space (m0, m1, k0, k1) with m = 49*m0 + m1 and
k = 32*k0 + k1 the same read is a permutation. `refine` finds such splits, and `factor` then reads a tensor whose
coordinates are mixed-radix numbers, `32*k0 + k1`, as an expanded tensor indexed by plain dimensions. Expanding a dense
tensor moves nothing, so an access for which both succeed costs no more than the original one (paper, section 3.2.1:
split and merge dependences).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod

from smartmem_mlir.index_maps.box import Box
from smartmem_mlir.index_maps.expr import ZERO, Dim, Expr, FloorDiv, Mod, dim
from smartmem_mlir.index_maps.simplify import simplify_exprs


@dataclass(frozen=True, slots=True)
class Refinement:
    """Each dimension of an iteration space as a mixed-radix number.

    Args:
        parts: For each original dimension the extents of its digits, most significant first. A dimension that stays
            whole has one.
    """

    parts: tuple[tuple[int, ...], ...]

    @property
    def extents(self) -> tuple[int, ...]:
        """The refined iteration space."""
        return tuple(extent for part in self.parts for extent in part)

    @property
    def is_trivial(self) -> bool:
        """Whether no dimension is split."""
        return all(len(part) == 1 for part in self.parts)

    def digits(self, original: int) -> range:
        """The refined dimensions that make up original dimension `original`."""
        start = sum(len(part) for part in self.parts[:original])
        return range(start, start + len(self.parts[original]))

    def exprs(self) -> tuple[Expr, ...]:
        """Each original dimension over the refined ones: `d0 = 49*d0' + d1'`."""
        out = []
        for i, part in enumerate(self.parts):
            total = ZERO
            for position, digit in enumerate(self.digits(i)):
                total += dim(digit) * prod(part[position + 1 :])
            out.append(total)
        return tuple(out)

    def apply(self, exprs: Sequence[Expr]) -> tuple[Expr, ...]:
        """`exprs`, over the original dimensions, rewritten over the refined ones and simplified there."""
        split = self.exprs()
        return simplify_exprs([expr.substitute(split) for expr in exprs], Box.of(self.extents))


def refine(extents: Sequence[int], accesses: Iterable[Sequence[Expr]]) -> Refinement | None:
    """Splits dimensions so that no access divides any more.

    Args:
        extents: The iteration space.
        accesses: Expressions over it, one sequence per operand.

    Returns:
        The coarsest split along the divisors that occur in the accesses, or None when they leave a division (a
        rotation, divisors that do not nest, a quotient of several dimensions).
    """
    accesses = [tuple(access) for access in accesses]
    cuts: list[set[int]] = [set() for _ in extents]
    for access in accesses:
        for expr in access:
            _collect_cuts(expr, extents, cuts)
    parts = []
    for extent, divisors in zip(extents, cuts, strict=True):
        strides = [extent, *sorted(divisors, reverse=True), 1]
        if any(outer % inner for outer, inner in pairwise(strides)):
            return None
        parts.append(tuple(outer // inner for outer, inner in pairwise(strides)) or (1,))
    refinement = Refinement(tuple(parts))
    for access in accesses:
        if not all(is_linear(expr) for expr in refinement.apply(access)):
            return None
    return refinement


def _collect_cuts(expr: Expr, extents: Sequence[int], cuts: list[set[int]]) -> None:
    """Adds to `cuts[d]` the strides at which dimension d must be split for the divisions in `expr` to dissolve."""
    for sub in expr.subexprs():
        for atom, _ in sub.terms:
            if isinstance(atom, FloorDiv | Mod):
                for inner, coefficient in atom.arg.terms:
                    # (c*d + ...) // v changes with d at every v/c: a digit boundary of d.
                    if isinstance(inner, Dim) and atom.value % abs(coefficient) == 0:
                        stride = atom.value // abs(coefficient)
                        if 1 < stride < extents[inner.index]:
                            cuts[inner.index].add(stride)


def is_linear(expr: Expr) -> bool:
    """Whether the expression is free of divisions."""
    return all(isinstance(atom, Dim) for atom, _ in expr.terms)


@dataclass(frozen=True, slots=True)
class Digit:
    """One axis of an expanded tensor.

    Args:
        extent: Size of the axis.
        dim: Iteration dimension that indexes it, None when it is always at `offset`.
        size: How many positions are read.
        offset: First position read.
        step: Distance of the positions read.
    """

    extent: int
    dim: int | None
    size: int
    offset: int = 0
    step: int = 1

    @property
    def is_whole(self) -> bool:
        """Whether every position of the axis is read."""
        return self.size == self.extent


@dataclass(frozen=True, slots=True)
class StridedAccess:
    """A read of a tensor as: expand each axis into digits, slice, index by dimensions.

    Args:
        axes: For each axis of the tensor its digits, most significant first; their extents multiply to the axis's.
    """

    axes: tuple[tuple[Digit, ...], ...]

    @property
    def digits(self) -> tuple[Digit, ...]:
        """The axes of the expanded tensor."""
        return tuple(digit for axis in self.axes for digit in axis)

    @property
    def dims(self) -> tuple[int, ...]:
        """Iteration dimension of each digit that has one, in the tensor's memory order."""
        return tuple(digit.dim for digit in self.digits if digit.dim is not None)

    @property
    def is_bijection(self) -> bool:
        """Whether every element is read exactly once per point of the dimensions involved."""
        return all(digit.is_whole for digit in self.digits) and len(set(self.dims)) == len(self.dims)


def factor(shape: Sequence[int], access: Sequence[Expr], extents: Sequence[int]) -> StridedAccess | None:
    """Reads a tensor whose coordinates are mixed-radix numbers as an expanded tensor.

    Args:
        shape: The tensor's extents.
        access: One expression per axis over the iteration space, in bounds, simplified over it.
        extents: The iteration space.

    Returns:
        The access by digits, or None when some coordinate is not a mixed-radix number of the dimensions (a division,
        a sliding window `i + r`, a reversal, digits that carry into each other).
    """
    axes = [_factor_axis(extent, expr, extents) for extent, expr in zip(shape, access, strict=True)]
    if any(axis is None for axis in axes):
        return None
    return StridedAccess(tuple(axis for axis in axes if axis is not None))


def _factor_axis(extent: int, expr: Expr, extents: Sequence[int]) -> tuple[Digit, ...] | None:
    terms: list[tuple[int, int]] = []
    for atom, coefficient in expr.terms:
        if not isinstance(atom, Dim) or coefficient <= 0:
            return None
        terms.append((coefficient, atom.index))
    if expr.const < 0:
        return None
    if not terms:
        return (Digit(extent, None, 1, expr.const),)
    terms.sort(reverse=True)
    digits: list[Digit] = []
    above, rest = extent, expr.const
    for stride, index in terms:
        size = extents[index]
        if above % stride:
            # A stride that does not divide the extent still is one strided slice, if nothing shares the axis.
            if len(terms) == 1:
                return (Digit(extent, index, size, expr.const, stride),)
            return None
        offset, rest = divmod(rest, stride)
        digit = Digit(above // stride, index, size, offset)
        if digit.offset + digit.size > digit.extent:
            return None
        digits.append(digit)
        above = stride
    if above > 1:
        digits.append(Digit(above, None, 1, rest))
    return tuple(digits)
