"""Minimal filtering: m outputs of a filter of r taps from m + r - 1 products instead of m * r.

Toom's and Cook's way to multiply polynomials, transposed (S. Winograd, "Arithmetic Complexity of Computations", 1980;
for convolutions of networks: A. Lavin and S. Gray, CVPR 2016): with y = A [(G g) * (B d)], where * is element by
element, y is what the filter g makes of the data d. In two dimensions each matrix is applied along both axes.

The matrices are of rational numbers, and whether they filter is checked with rational numbers, for every pair of a tap
and an element: filtering is bilinear, so that these are all cases.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import prod

Matrix = tuple[tuple[Fraction, ...], ...]

_POINTS = (0, 1, -1, 2, -2)
"""Where polynomials are evaluated, besides at infinity: small numbers, so that little is lost to rounding."""


@dataclass(frozen=True)
class MinimalFiltering:
    """F(m, r).

    Args:
        outputs: m.
        taps: r.
        points: The numbers among the m + r - 1 points; the last point is infinity.
        data: B, m + r - 1 rows and columns.
        filter: G, m + r - 1 rows, r columns.
        output: A, m rows, m + r - 1 columns.
    """

    outputs: int
    taps: int
    points: tuple[int, ...]
    data: Matrix
    filter: Matrix
    output: Matrix

    @property
    def size(self) -> int:
        """Elements that are read and products that are made, m + r - 1."""
        return self.outputs + self.taps - 1

    def filters(self) -> bool:
        """Whether output i is the sum over the taps k of filter k times element i + k, exactly."""
        return all(
            sum(self.output[i][p] * self.filter[p][tap] * self.data[p][element] for p in range(self.size))
            == (1 if element == i + tap else 0)
            for i in range(self.outputs)
            for tap in range(self.taps)
            for element in range(self.size)
        )


@cache
def minimal_filtering(outputs: int, taps: int) -> MinimalFiltering:
    """The matrices.

    Args:
        outputs: m, at least 1.
        taps: r, at least 1; m + r is at most 7.
    """
    size = outputs + taps - 1
    points = _POINTS[: size - 1]
    assert len(points) == size - 1, "there are points for this size"
    others = [[q for q in points if q != p] for p in points]
    scales = [Fraction(1, prod(p - q for q in rest)) for p, rest in zip(points, others, strict=True)]
    rows = [_monic(rest) for rest in others] + [_monic(points)]
    made = MinimalFiltering(
        outputs,
        taps,
        points,
        tuple(tuple(map(Fraction, row + [0] * (size - len(row)))) for row in rows),
        (
            *(tuple(scale * p**k for k in range(taps)) for p, scale in zip(points, scales, strict=True)),
            _unit(taps - 1, taps),
        ),
        tuple((*(Fraction(p**i) for p in points), Fraction(1 if i == outputs - 1 else 0)) for i in range(outputs)),
    )
    if not made.filters():
        raise ArithmeticError(f"F({outputs}, {taps}) does not filter")
    return made


def _monic(roots: list[int] | tuple[int, ...]) -> list[int]:
    """Coefficients of the product of (x - root), lowest power first."""
    result = [1]
    for root in roots:
        result = [a - root * b for a, b in zip([0, *result], [*result, 0], strict=True)]
    return result


def _unit(place: int, size: int) -> tuple[Fraction, ...]:
    return tuple(Fraction(1 if i == place else 0) for i in range(size))
