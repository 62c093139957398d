"""Rows of a matrix that is read in pieces, laid out for a kernel, with what is computed from them on the way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import reduce

from mlir import ir
from mlir.dialects import arith, memref, scf, vector

from smartmem_mlir.kernels.bodies import evaluate
from smartmem_mlir.kernels.cpu.attention_plan import OUTER, Operand, Source
from smartmem_mlir.kernels.cpu.attention_tiles import address_of, unmasked
from smartmem_mlir.kernels.cpu.lanes import FEWEST_LANES, Part, add, cut, index, load, loop, scaled, splat, store
from smartmem_mlir.kernels.cpu.linear_attention_plan import Matrix, Piece
from smartmem_mlir.kernels.cpu.packing import Rows, pack
from smartmem_mlir.kernels.functions import FUNCTIONS
from smartmem_mlir.transforms.view_code import index_value

Buffers = Mapping[Source, ir.Value]


def lay_out(matrix: Matrix, buffers: Buffers, outer: ir.Value, rows: tuple[ir.Value, int], target: Rows) -> None:
    """Writes rows of a matrix one after the other.

    Args:
        matrix: What to read.
        buffers: Memory of each tensor.
        outer: Which matrix.
        rows: The first row, and how many.
        target: Where they go; elements behind the last column may be anything.
    """
    for piece in matrix.pieces:
        write = _Writer(matrix, piece, buffers, outer, rows, target).write
        tests = []
        for expr, lo, hi in piece.conditions:
            at = index_value(expr, [outer])
            tests.append(arith.cmpi(arith.CmpIPredicate.uge, at, index(lo)))
            tests.append(arith.cmpi(arith.CmpIPredicate.ult, at, index(hi)))
        if not tests:
            write()
            continue
        branch = scf.IfOp(reduce(arith.andi, tests))
        with ir.InsertionPoint(branch.then_block):
            write()
            scf.YieldOp([])


class _Writer:
    """Writes the rows of a piece.

    Args:
        matrix: Whose piece it is.
        piece: The piece.
        buffers: Memory of each tensor.
        outer: Which matrix.
        rows: The first row that is wanted, and how many are.
        target: Where they go.
    """

    def __init__(
        self,
        matrix: Matrix,
        piece: Piece,
        buffers: Buffers,
        outer: ir.Value,
        rows: tuple[ir.Value, int],
        target: Rows,
    ) -> None:
        self._matrix = matrix
        self._piece = piece
        self._outer = outer
        self._first, self._count = rows
        self._target = target
        self._column, end = piece.columns
        self._width = end - self._column
        self._parts = [replace(part, offset=part.offset + self._column) for part in cut(self._width, target.lanes)]
        source = piece.source
        self._memory = buffers[source.source] if isinstance(source, Operand) else None

    def write(self) -> None:
        """Writes them at the insertion point."""
        source = self._piece.source
        if isinstance(source, float):
            self._each_row(lambda row: self._fill(row, source))
        elif source.stride(self._matrix.column) == 1:
            self._each_row(self._copy)
        elif source.stride(self._matrix.row) == 1 and self._is_first_and_has_all_rows():
            self._transpose()
        else:
            self._each_row(self._gather)

    def _is_first_and_has_all_rows(self) -> bool:
        return self._column == 0 and all(other.rows == self._piece.rows for other in self._matrix.pieces)

    def _each_row(self, body: Callable[[ir.Value], None]) -> None:
        """Runs the body for each row that is wanted and that the piece has."""
        first, end = self._piece.rows
        start = arith.maxsi(self._first, index(first))
        stop = arith.minsi(add(self._first, self._count), index(end))

        def step(row: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            body(row)
            return []

        loop(start, stop, 1, [], step)

    def _address(self, row: ir.Value, column: ir.Value) -> ir.Value:
        source = self._piece.source
        assert isinstance(source, Operand), "numbers have no address"
        return address_of(source, {OUTER: self._outer, self._matrix.row: row, self._matrix.column: column})

    def _place(self, row: ir.Value) -> ir.Value:
        return scaled(arith.subi(row, self._first), self._target.pitch)

    def _store(self, value: ir.Value, row: ir.Value, part: Part) -> None:
        """All lanes where the row has room: what is behind its last column is computed with, and should be cheap to."""
        has_room = part.offset + part.lanes <= self._target.pitch
        at = add(self._place(row), part.offset)
        store(value, self._target.memory, at, unmasked(part) if has_room else part)

    def _fill(self, row: ir.Value, value: float) -> None:
        for part in self._parts:
            self._store(self._computed(splat(value, part.lanes)), row, part)

    def _copy(self, row: ir.Value) -> None:
        first = self._address(row, index(self._column))
        for part in self._parts:
            read = load(self._memory, add(first, part.offset - self._column), part)
            self._store(self._computed(read), row, part)

    def _transpose(self) -> None:
        """Rows are adjacent: squares of them are transposed in registers, and then computed with."""
        target = self._target
        shape = self._count, self._width
        pack(self._memory, lambda i, j: self._address(arith.addi(self._first, i), j), shape, True, target)
        if not self._piece.steps:
            return

        def compute(row: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            for part in map(unmasked, self._parts):
                at = add(scaled(row, target.pitch), part.offset)
                store(self._computed(load(target.memory, at, part)), target.memory, at, part)
            return []

        loop(index(0), index(self._count), 1, [], compute)

    def _gather(self, row: ir.Value) -> None:
        def element(column: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            value = self._computed(splat(memref.load(self._memory, [self._address(row, column)]), FEWEST_LANES))
            at = arith.addi(self._place(row), column)
            memref.StoreOp(vector.extract(value, [], [0]), self._target.memory, [at])
            return []

        loop(index(self._column), index(self._column + self._width), 1, [], element)

    def _computed(self, value: ir.Value) -> ir.Value:
        """What the piece computes of elements, in every lane."""
        (lanes,) = value.type.shape
        for step in self._piece.steps:
            arguments = [value if number is None else splat(number, lanes) for number in step.arguments]
            value = evaluate(step.body, arguments, lanes, FUNCTIONS)
        return value
