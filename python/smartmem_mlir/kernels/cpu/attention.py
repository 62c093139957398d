"""The body of an attention kernel for a CPU, as MLIR of the scf, vector and memref dialects."""

from __future__ import annotations

from collections.abc import Callable

from mlir import ir
from mlir.dialects import arith, memref, scf, vector

from smartmem_mlir.kernels.cpu.attention_plan import (
    DEPTH,
    KEY,
    OUTER,
    ROW,
    VALUE,
    AttentionPlan,
    Source,
)
from smartmem_mlir.kernels.cpu.attention_tiles import (
    MINUS_INFINITY,
    Keys,
    Tile,
    TileEmitter,
    address_of,
    unmasked,
)
from smartmem_mlir.kernels.cpu.lanes import (
    add,
    block_range,
    cut,
    index,
    load,
    loop,
    maximum,
    number,
    scaled,
    scratch,
    splat,
    store,
)
from smartmem_mlir.kernels.cpu.packing import pack
from smartmem_mlir.kernels.functions import exp_of_nonpositive


class AttentionEmitter:
    """Writes one kernel at the insertion point, the start of a function.

    Args:
        plan: The kernel.
        buffers: For each tensor that it reads, the memory as a one-dimensional memref.
        output: The memory of the result.
    """

    def __init__(self, plan: AttentionPlan, buffers: dict[Source, ir.Value], output: ir.Value) -> None:
        self._plan = plan
        self._code = TileEmitter(plan, buffers, output)
        self._value_parts = cut(plan.counts[VALUE], plan.lanes)
        rows = plan.block_rows if plan.online else 0
        self._results = scratch(rows * self._code.value_pitch) if rows else None
        self._maxima = scratch(rows) if rows else None
        self._sums = scratch(rows) if rows else None

    def emit(self, outer_block: ir.Value, row_block: ir.Value) -> None:
        """Computes the workgroup at these indices."""
        plan = self._plan
        first, last = block_range(outer_block, plan.block_outer, plan.counts[OUTER])
        row, end = block_range(row_block, plan.block_rows, plan.counts[ROW])

        def matrix(outer: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            if plan.online:
                self._matrix_online(outer, row, end)
            else:
                keys = self._lay_out(outer, index(0), plan.counts[KEY])
                self._tiles(outer, row, end, lambda tile: self._tile(tile, keys))
            return []

        loop(first, last, 1, [], matrix)

    def _tiles(self, outer: ir.Value, row: ir.Value, end: ir.Value, body: Callable[[Tile], None]) -> None:
        """Full tiles in a loop, then the rows that are left."""
        plan = self._plan
        tails = {
            min(plan.block_rows, plan.counts[ROW] - start) % plan.tile_rows
            for start in range(0, plan.counts[ROW], plan.block_rows)
        }
        rest = arith.remui(arith.subi(end, row), index(plan.tile_rows))
        full_end = arith.subi(end, rest)

        def full(first: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            body(Tile(outer, first, arith.subi(first, row), plan.tile_rows))
            return []

        loop(row, full_end, plan.tile_rows, [], full)
        for tail in sorted(tails - {0}):
            branch = scf.IfOp(arith.cmpi(arith.CmpIPredicate.eq, rest, index(tail)))
            with ir.InsertionPoint(branch.then_block):
                body(Tile(outer, full_end, arith.subi(full_end, row), tail))
                scf.YieldOp([])

    def _lay_out(self, outer: ir.Value, first: ir.Value, count: int) -> Keys:
        """Brings a block of K, and of V, into the order that tiles read."""
        plan = self._plan
        keys, values = self._code.packed_keys, self._code.packed_values
        if keys is not None:

            def key_at(depth: ir.Value, key: ir.Value) -> ir.Value:
                return address_of(plan.key, {OUTER: outer, KEY: arith.addi(first, key), DEPTH: depth})

            shape = (plan.counts[DEPTH], count)
            pack(self._code.buffer(plan.key), key_at, shape, plan.key.stride(DEPTH) == 1, keys)
        if values is not None:

            def value_at(key: ir.Value, value: ir.Value) -> ir.Value:
                return address_of(plan.value, {OUTER: outer, KEY: arith.addi(first, key), VALUE: value})

            shape = (count, plan.counts[VALUE])
            pack(self._code.buffer(plan.value), value_at, shape, plan.value.stride(KEY) == 1, values)
        return Keys(first, tuple(cut(count, plan.lanes)), count)

    def _tile(self, tile: Tile, keys: Keys) -> None:
        """Rows against all keys."""
        maxima, kept = self._code.scores_of(tile, keys)
        sums = self._code.weights_of(tile, keys, maxima, kept)
        for parts in self._code.panels(self._value_parts):
            zeros = [splat(0.0, part.lanes) for _ in range(tile.rows) for part in parts]
            results = self._code.weighted(tile, keys, parts, zeros)
            for i in range(tile.rows):
                of_row = results[i * len(parts) : (i + 1) * len(parts)]
                self._code.finish(tile.outer, tile.row(i), parts, of_row, sums[i])

    def _matrix_online(self, outer: ir.Value, row: ir.Value, end: ir.Value) -> None:
        """Rows against one block of keys after the other."""
        plan = self._plan
        maxima, sums, results = self._maxima, self._sums, self._results
        assert maxima is not None
        assert sums is not None
        assert results is not None
        count = arith.subi(end, row)
        whole = cut(self._code.value_pitch, plan.lanes)

        def start(i: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            memref.StoreOp(number(MINUS_INFINITY), maxima, [i])
            memref.StoreOp(number(0.0), sums, [i])
            at = scaled(i, self._code.value_pitch)
            for part in whole:
                store(splat(0.0, part.lanes), results, add(at, part.offset), part)
            return []

        def block(first: ir.Value, size: int) -> None:
            keys = self._lay_out(outer, first, size)
            self._tiles(outer, row, end, lambda tile: self._tile_online(tile, keys))

        def full_block(first: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            block(first, plan.block_keys)
            return []

        def finish(i: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            total = memref.load(sums, [i])
            at = scaled(i, self._code.value_pitch)
            for parts in self._code.panels(self._value_parts):
                loaded = [load(results, add(at, part.offset), unmasked(part)) for part in parts]
                self._code.finish(outer, arith.addi(row, i), parts, loaded, total)
            return []

        loop(index(0), count, 1, [], start)
        rest = plan.counts[KEY] % plan.block_keys
        loop(index(0), index(plan.counts[KEY] - rest), plan.block_keys, [], full_block)
        if rest:
            block(index(plan.counts[KEY] - rest), rest)
        loop(index(0), count, 1, [], finish)

    def _tile_online(self, tile: Tile, keys: Keys) -> None:
        maxima, sums, results = self._maxima, self._sums, self._results
        assert maxima is not None
        assert sums is not None
        assert results is not None
        block_maxima, kept = self._code.scores_of(tile, keys)
        used, corrections = [], []
        for i in range(tile.rows):
            local = add(tile.local_row, i)
            before = memref.load(maxima, [local])
            now = maximum(block_maxima[i], before)
            memref.StoreOp(now, maxima, [local])
            # A row without any key so far has no maximum: its weights are exp(-inf - 0).
            none = arith.cmpf(arith.CmpFPredicate.OEQ, now, number(MINUS_INFINITY))
            used.append(arith.select(none, number(0.0), now))
            correction = exp_of_nonpositive(splat(arith.subf(before, used[-1]), self._plan.lanes))
            corrections.append(vector.extract(correction, [], [0]))
        block_sums = self._code.weights_of(tile, keys, used, kept)
        for i in range(tile.rows):
            local = add(tile.local_row, i)
            total = arith.mulf(memref.load(sums, [local]), corrections[i])
            memref.StoreOp(arith.addf(total, block_sums[i]), sums, [local])
        for parts in self._code.panels(self._value_parts):
            places = [
                (i, add(scaled(add(tile.local_row, i), self._code.value_pitch), part.offset), unmasked(part))
                for i in range(tile.rows)
                for part in parts
            ]
            before = [arith.mulf(load(results, at, part), splat(corrections[i], part.lanes)) for i, at, part in places]
            for value, (_, at, part) in zip(self._code.weighted(tile, keys, parts, before), places, strict=True):
                store(value, results, at, part)
