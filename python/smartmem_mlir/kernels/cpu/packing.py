"""Laying a matrix out for a kernel: rows one after the other, their elements adjacent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, memref, vector

from smartmem_mlir.kernels.cpu.lanes import Part, add, cut, index, load, loop, scaled, splat, transpose

UNROLLED_SQUARES = 2
"""Squares of a transposition that stand side by side in the code; more are a loop."""


@dataclass(frozen=True)
class Rows:
    """Memory of ours that holds a matrix row by row.

    Args:
        memory: A one-dimensional memref.
        pitch: Elements between rows, a multiple of `lanes`: there are whole vectors at the end of each row.
        lanes: Elements of a vector.
    """

    memory: ir.Value
    pitch: int
    lanes: int


def pack(
    source: ir.Value,
    address: Callable[[ir.Value, ir.Value], ir.Value],
    shape: tuple[int, int],
    columns_adjacent: bool,
    target: Rows,
) -> None:
    """Copies `source[address(i, j)]` to row i and column j of the target.

    Args:
        source: Memory.
        address: Where the element of row i and column j is.
        shape: Rows and columns.
        columns_adjacent: Whether successive i are adjacent in the source: it is then transposed in registers.
        target: Where they go.
    """
    rows, columns = shape
    memory, pitch, lanes = target.memory, target.pitch, target.lanes
    if not columns_adjacent:

        def row(i: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            def element(j: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
                value = memref.load(source, [address(i, j)])
                memref.StoreOp(value, memory, [arith.addi(scaled(i, pitch), j)])
                return []

            return loop(index(0), index(columns), 1, [], element)

        loop(index(0), index(rows), 1, [], row)
        return

    def columns_from(j: ir.Value, part: Part) -> None:
        _in_squares(rows, part.lanes, lambda i, height: square(i, j, part, height))

    def square(i: ir.Value, j: ir.Value, part: Part, height: int) -> None:
        """`height` rows and the part's valid columns."""
        read = Part(0, part.lanes, height)
        loaded = [load(source, address(i, add(j, t)), read) for t in range(part.valid)]
        loaded += [splat(0.0, part.lanes)] * (part.lanes - part.valid)
        for t, value in enumerate(transpose(loaded)[:height]):
            vector.StoreOp(value, memory, [arith.addi(scaled(add(i, t), pitch), j)])

    parts = cut(columns, lanes)
    whole = [part for part in parts if part.valid == lanes]
    if len(whole) > UNROLLED_SQUARES:

        def step(j: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            columns_from(j, whole[0])
            return []

        loop(index(0), index(len(whole) * lanes), lanes, [], step)
        parts = parts[len(whole) :]
    for part in parts:
        columns_from(index(part.offset), part)


def _in_squares(rows: int, lanes: int, body: Callable[[ir.Value, int], None]) -> None:
    """Runs the body for every `lanes` rows and for the rows that are left."""
    whole = rows // lanes
    first = 0
    if whole > UNROLLED_SQUARES:
        first = whole

        def step(i: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            body(i, lanes)
            return []

        loop(index(0), index(whole * lanes), lanes, [], step)
    for start in range(first * lanes, rows, lanes):
        body(index(start), min(lanes, rows - start))
