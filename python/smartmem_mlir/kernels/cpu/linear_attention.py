"""The body of a kernel of attention without a softmax for a CPU, as MLIR of the scf, vector and memref dialects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, memref, vector

from smartmem_mlir.kernels.bodies import evaluate
from smartmem_mlir.kernels.cpu.attention_plan import DEPTH, KEY, OUTER, ROW, VALUE, Source
from smartmem_mlir.kernels.cpu.attention_tiles import address_of, unmasked
from smartmem_mlir.kernels.cpu.lanes import (
    Part,
    add,
    block_range,
    cut,
    index,
    load,
    loop,
    scaled,
    scratch,
    splat,
    store,
    tiled,
)
from smartmem_mlir.kernels.cpu.linear_attention_plan import EpilogueArgument, LinearAttentionPlan
from smartmem_mlir.kernels.cpu.matrix_rows import lay_out
from smartmem_mlir.kernels.cpu.packing import Rows
from smartmem_mlir.kernels.functions import FUNCTIONS
from smartmem_mlir.transforms.linear_attention_epilogue import Column


@dataclass(frozen=True)
class _Factor:
    """The factor of a product whose elements are repeated: element (row, term) is at first + row * down + term * along.

    Args:
        memory: Where it is.
        first: Address of the first row of a tile.
        down: Distance of rows.
        along: Distance of terms of the sum.
    """

    memory: ir.Value
    first: ir.Value
    down: int
    along: int


class LinearAttentionEmitter:
    """Writes one kernel at the insertion point, the start of a function.

    Args:
        plan: The kernel.
        buffers: For each tensor that it reads, the memory as a one-dimensional memref.
        output: The memory of the result.
    """

    def __init__(self, plan: LinearAttentionPlan, buffers: dict[Source, ir.Value], output: ir.Value) -> None:
        self._plan = plan
        self._buffers = buffers
        self._output = output
        depth_pitch, value_pitch = plan.depth_pitch, plan.value_pitch
        self._keys = Rows(scratch(plan.block_keys * depth_pitch), depth_pitch, plan.lanes)
        self._values = Rows(scratch(plan.block_keys * value_pitch), value_pitch, plan.lanes)
        self._state = Rows(scratch(plan.counts[DEPTH] * value_pitch), value_pitch, plan.lanes)
        self._queries = Rows(scratch(plan.row_tile * depth_pitch), depth_pitch, plan.lanes)
        self._product = Rows(scratch(plan.row_tile * value_pitch), value_pitch, plan.lanes)
        self._parts = [unmasked(part) for part in cut(plan.counts[VALUE], plan.lanes)]

    def emit(self, block: ir.Value) -> None:
        """Computes the workgroup of this index."""
        plan = self._plan
        first, last = block_range(block, plan.block_outer, plan.counts[OUTER])

        def matrix(outer: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            self._compute_state(outer)
            tiled(plan.counts[ROW], plan.row_tile, lambda row, count: self._rows(outer, row, count))
            return []

        loop(first, last, 1, [], matrix)

    def _compute_state(self, outer: ir.Value) -> None:
        """The product of keys and values of a matrix, block of keys by block."""
        plan, state = self._plan, self._state

        def clear(row: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            for part in self._parts:
                store(splat(0.0, part.lanes), state.memory, add(scaled(row, state.pitch), part.offset), part)
            return []

        loop(index(0), index(plan.counts[DEPTH]), 1, [], clear)

        def block(first: ir.Value, count: int) -> None:
            lay_out(plan.key, self._buffers, outer, (first, count), self._keys)
            lay_out(plan.value, self._buffers, outer, (first, count), self._values)

            def tile(depth: ir.Value, rows: int) -> None:
                keys = _Factor(self._keys.memory, depth, 1, self._keys.pitch)
                self._multiply(keys, self._values, count, rows, state, depth)

            tiled(plan.counts[DEPTH], plan.depth_tile, tile)

        tiled(plan.counts[KEY], plan.block_keys, block)

    def _rows(self, outer: ir.Value, row: ir.Value, count: int) -> None:
        """Some rows of the result."""
        plan, product = self._plan, self._product
        lay_out(plan.query, self._buffers, outer, (row, count), self._queries)
        queries = _Factor(self._queries.memory, index(0), self._queries.pitch, 1)
        self._multiply(queries, self._state, plan.counts[DEPTH], count, product, None)

        def finish(i: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            at = scaled(i, product.pitch)
            for part in cut(plan.columns, plan.lanes):
                self._finish({OUTER: outer, ROW: arith.addi(row, i), VALUE: index(part.offset)}, at, part)
            return []

        loop(index(0), index(count), 1, [], finish)

    def _multiply(
        self, left: _Factor, right: Rows, terms: int, rows: int, target: Rows, first: ir.Value | None
    ) -> None:
        """Products of a tile of rows with all columns.

        Args:
            left: Elements that are repeated.
            right: Rows of vectors, one for each term.
            terms: Of each sum.
            rows: How many.
            target: Where the sums go.
            first: Its row that the first sum is added to; None if its first rows are written instead.
        """
        most = self._plan.vectors
        for parts in [self._parts[i : i + most] for i in range(0, len(self._parts), most)]:
            self._panel(left, right, terms, rows, parts, target, first)

    def _panel(
        self,
        left: _Factor,
        right: Rows,
        terms: int,
        rows: int,
        parts: Sequence[Part],
        target: Rows,
        first: ir.Value | None,
    ) -> None:
        start = index(0) if first is None else scaled(first, target.pitch)
        places = [(add(start, i * target.pitch + part.offset), part) for i in range(rows) for part in parts]
        if first is None:
            sums = [splat(0.0, part.lanes) for _, part in places]
        else:
            sums = [load(target.memory, at, part) for at, part in places]

        def step(term: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
            base = scaled(term, right.pitch)
            vectors = [load(right.memory, add(base, part.offset), part) for part in parts]
            at = arith.addi(left.first, scaled(term, left.along))
            result = []
            for i in range(rows):
                element = memref.load(left.memory, [add(at, i * left.down)])
                for j, part in enumerate(parts):
                    result.append(vector.fma(splat(element, part.lanes), vectors[j], sums[i * len(parts) + j]))
            return result

        totals = loop(index(0), index(terms), 1, sums, step)
        for total, (at, part) in zip(totals, places, strict=True):
            store(total, target.memory, at, part)

    def _finish(self, position: dict[int, ir.Value], at: ir.Value, part: Part) -> None:
        """Computes a vector of the result from the row of the product at `at`, and stores it."""
        plan = self._plan
        results = [load(self._product.memory, add(at, plan.first_column + part.offset), part)]
        for step in plan.epilogue:
            arguments = [self._argument(argument, position, at, part, results) for argument in step.arguments]
            results.append(evaluate(step.body, arguments, part.lanes, FUNCTIONS))
        where = address_of(plan.output, position)
        stride = plan.output.stride(VALUE)
        if stride == 1:
            store(results[-1], self._output, where, part)
            return
        for lane in range(part.valid):
            memref.StoreOp(vector.extract(results[-1], [], [lane]), self._output, [add(where, lane * (stride or 0))])

    def _argument(
        self,
        argument: EpilogueArgument,
        position: dict[int, ir.Value],
        at: ir.Value,
        part: Part,
        results: Sequence[ir.Value],
    ) -> ir.Value:
        if isinstance(argument, float):
            return splat(argument, part.lanes)
        if isinstance(argument, int):
            return results[argument]
        if isinstance(argument, Column):
            return splat(memref.load(self._product.memory, [add(at, argument.at[0])]), part.lanes)
        where = address_of(argument, position)
        if argument.stride(VALUE) == 1:
            return load(self._buffers[argument.source], where, part)
        return splat(memref.load(self._buffers[argument.source], [where]), part.lanes)
