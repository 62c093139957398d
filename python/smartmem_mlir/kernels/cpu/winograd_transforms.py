"""A matrix of a minimal filtering times vectors, or along both axes of a grid of them, as MLIR."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product

from mlir import ir
from mlir.dialects import arith, vector

from smartmem_mlir.kernels.cpu.lanes import splat
from smartmem_mlir.kernels.winograd import Matrix

Grid = list[list[ir.Value]]
"""Vectors by row and column."""


def cells(grid: Grid) -> list[tuple[tuple[int, int], ir.Value]]:
    """The vectors, each with its row and column."""
    return [((a, b), grid[a][b]) for a, b in product(range(len(grid)), range(len(grid[0])))]


def both_axes(matrix: Matrix, grid: Grid, apply: Callable[[Matrix, Sequence[ir.Value]], list[ir.Value]]) -> Grid:
    """M X M^T."""
    rows = [apply(matrix, row) for row in grid]
    columns = [apply(matrix, [row[b] for row in rows]) for b in range(len(matrix))]
    return [[column[a] for column in columns] for a in range(len(matrix))]


def by_rows(matrix: Matrix, values: Sequence[ir.Value]) -> list[ir.Value]:
    """M x, where rows that differ in signs only, those of a point and its negative, share their halves."""
    result: list[ir.Value] = []
    for i, row in enumerate(matrix):
        if len(result) > i:
            continue
        other = matrix[i + 1] if i + 1 < len(matrix) else None
        if other is None or any(abs(a) != abs(b) for a, b in zip(row, other, strict=True)):
            result.append(_sum(row, values))
            continue
        same = _sum([a if a == b else Fraction(0) for a, b in zip(row, other, strict=True)], values)
        differing = _sum([a if a != b else Fraction(0) for a, b in zip(row, other, strict=True)], values)
        result += [arith.addf(same, differing), arith.subf(same, differing)]
    return result


def by_columns(matrix: Matrix, values: Sequence[ir.Value]) -> list[ir.Value]:
    """M x, where columns that differ in signs only share the sum and the difference of their elements."""
    terms: list[tuple[list[Fraction], ir.Value]] = []
    columns = list(zip(*matrix, strict=True))
    i = 0
    while i < len(columns):
        here = columns[i]
        there = columns[i + 1] if i + 1 < len(columns) else None
        if there is None or here == there or any(abs(a) != abs(b) for a, b in zip(here, there, strict=True)):
            terms.append((list(here), values[i]))
            i += 1
            continue
        same = [a if a == b else Fraction(0) for a, b in zip(here, there, strict=True)]
        differing = [a if a != b else Fraction(0) for a, b in zip(here, there, strict=True)]
        terms.append((same, arith.addf(values[i], values[i + 1])))
        terms.append((differing, arith.subf(values[i], values[i + 1])))
        i += 2
    return [_sum([column[r] for column, _ in terms], [value for _, value in terms]) for r in range(len(matrix))]


def _sum(factors: Sequence[Fraction], values: Sequence[ir.Value]) -> ir.Value:
    """The sum of factors times vectors; factors of 1 first, so that the sum starts without a multiplication."""
    terms = sorted(((f, v) for f, v in zip(factors, values, strict=True) if f), key=lambda term: term[0] != 1)
    assert terms, "no row of a filtering is zero"
    total: ir.Value | None = None
    for factor, value in terms:
        lanes = value.type.shape[0]
        if total is None:
            total = value if factor == 1 else arith.mulf(value, splat(float(factor), lanes))
        elif abs(factor) == 1:
            total = arith.addf(total, value) if factor == 1 else arith.subf(total, value)
        else:
            total = vector.fma(value, splat(float(factor), lanes), total)
    assert total is not None
    return total
