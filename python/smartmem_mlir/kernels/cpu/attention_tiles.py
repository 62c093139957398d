"""Tiles of attention on a CPU: scores, weights and weighted sums of a few rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, memref, vector

from smartmem_mlir.index_maps.expr import ZERO, dim
from smartmem_mlir.kernels.cpu.attention_plan import (
    DEPTH,
    KEY,
    OUTER,
    ROW,
    VALUE,
    Argument,
    AttentionPlan,
    Operand,
    PlannedStep,
    Source,
    padded,
)
from smartmem_mlir.kernels.cpu.lanes import (
    Combine,
    Part,
    add,
    apply_body,
    index,
    load,
    loop,
    mask,
    maximum,
    number,
    reduce,
    scaled,
    scratch,
    splat,
    store,
)
from smartmem_mlir.kernels.cpu.packing import Rows
from smartmem_mlir.kernels.functions import exp_of_nonpositive
from smartmem_mlir.transforms.attention_group import SUM
from smartmem_mlir.transforms.view_code import index_value

MINUS_INFINITY = float("-inf")


@dataclass(frozen=True)
class Tile:
    """Rows of one matrix.

    Args:
        outer: The matrix.
        first_row: The first row.
        local_row: Its number within the workgroup.
        rows: How many.
    """

    outer: ir.Value
    first_row: ir.Value
    local_row: ir.Value
    rows: int

    def row(self, i: int) -> ir.Value:
        """Index of row number i."""
        return add(self.first_row, i)


@dataclass(frozen=True)
class Keys:
    """A block of keys.

    Args:
        first: The first one.
        parts: The block as vectors.
        count: How many there are.
    """

    first: ir.Value
    parts: tuple[Part, ...]
    count: int


class TileEmitter:
    """Writes the computation of tiles at the insertion point.

    Made at the start of a function: its scratch memory is allocated once.

    Args:
        plan: The kernel.
        buffers: For each tensor that it reads, the memory as a one-dimensional memref.
        output: The memory of the result.
    """

    def __init__(self, plan: AttentionPlan, buffers: dict[Source, ir.Value], output: ir.Value) -> None:
        self._plan = plan
        self._buffers = buffers
        self._output = output
        depth, values = plan.counts[DEPTH], plan.counts[VALUE]
        self._key_pitch = padded(plan.block_keys, plan.lanes)
        self.value_pitch = padded(values, plan.lanes)
        """Elements between rows of V laid out, and of unfinished results."""
        self._scores = scratch(plan.tile_rows * self._key_pitch)
        self.packed_keys = _rows(depth, self._key_pitch, plan.lanes) if plan.packs_key else None
        """K laid out, [depth][keys]; None when K is read as it is."""
        self.packed_values = _rows(plan.block_keys, self.value_pitch, plan.lanes) if plan.packs_value else None
        """V laid out, [keys][columns]; None when V is read as it is."""

    def scores_of(self, tile: Tile, keys: Keys) -> tuple[list[ir.Value], list[list[ir.Value]] | None]:
        """Each row's maximum; the scores go to the scratch, or are kept when there is but one panel."""
        single = len(self.panels(keys.parts)) == 1
        kept: list[list[ir.Value]] = []

        def panel(at: ir.Value, parts: tuple[Part, ...]) -> list[list[ir.Value]]:
            products = self._products(tile, keys, at, parts)
            rows = []
            for i in range(tile.rows):
                row = []
                for j, part in enumerate(parts):
                    position = {OUTER: tile.outer, ROW: tile.row(i), KEY: add(arith.addi(keys.first, at), part.offset)}
                    score = self._score(products[i * len(parts) + j], position, part)
                    if not single:
                        store(score, self._scores, add(at, i * self._key_pitch + part.offset), unmasked(part))
                    row.append(score)
                rows.append(row)
            kept.extend(rows)
            return rows

        maxima = self._over_panels(keys, tile.rows, maximum, MINUS_INFINITY, panel)
        return maxima, kept if single else None

    def weights_of(
        self, tile: Tile, keys: Keys, maxima: Sequence[ir.Value], kept: list[list[ir.Value]] | None
    ) -> list[ir.Value]:
        """Turns scores into exp(score - maximum), in the scratch, and gives each row's sum."""

        def panel(at: ir.Value, parts: tuple[Part, ...]) -> list[list[ir.Value]]:
            rows = []
            for i in range(tile.rows):
                row = []
                for j, part in enumerate(parts):
                    place = add(at, i * self._key_pitch + part.offset)
                    score = load(self._scores, place, unmasked(part)) if kept is None else kept[i][j]
                    weight = exp_of_nonpositive(arith.subf(score, splat(maxima[i], part.lanes)))
                    store(weight, self._scores, place, unmasked(part))
                    row.append(weight)
                rows.append(row)
            return rows

        return self._over_panels(keys, tile.rows, arith.addf, 0.0, panel)

    def weighted(self, tile: Tile, keys: Keys, parts: Sequence[Part], start: Sequence[ir.Value]) -> list[ir.Value]:
        """`start` plus the weights in the scratch times columns of V."""
        plan = self._plan
        if self.packed_values is None:
            value_buffer, value_parts = self.buffer(plan.value), list(parts)
            value_at = _walk_one(plan.value, {OUTER: tile.outer}, KEY, keys.first)
        else:
            value_buffer, value_parts = self.packed_values.memory, [unmasked(part) for part in parts]

            def value_at(key: ir.Value) -> ir.Value:
                return scaled(key, self.value_pitch)

        def step(key: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
            base = value_at(key)
            vectors = [load(value_buffer, add(base, part.offset), part) for part in value_parts]
            result = []
            for i in range(tile.rows):
                weight = memref.load(self._scores, [add(key, i * self._key_pitch)])
                for j, part in enumerate(parts):
                    result.append(vector.fma(splat(weight, part.lanes), vectors[j], sums[i * len(parts) + j]))
            return result

        return loop(index(0), index(keys.count), 1, start, step)

    def finish(
        self, outer: ir.Value, row: ir.Value, parts: Sequence[Part], results: Sequence[ir.Value], total: ir.Value
    ) -> None:
        """Divides, computes what follows and stores part of a row."""
        plan = self._plan
        for part, value in zip(parts, results, strict=True):
            position = {OUTER: outer, ROW: row, VALUE: index(part.offset)}
            if plan.group.divided:
                value = arith.divf(value, splat(total, part.lanes))
            if plan.group.zero_if_undefined:
                defined = arith.cmpf(arith.CmpFPredicate.OGT, total, number(0.0))
                value = arith.select(defined, value, splat(0.0, part.lanes))
            value = self._steps(plan.epilogue, value, position, VALUE, part, total)
            at = address_of(plan.output, position)
            stride = plan.output.stride(VALUE)
            if stride == 1:
                store(value, self._output, at, part)
                continue
            for lane in range(part.valid):
                element = vector.extract(value, [], [lane])
                memref.StoreOp(element, self._output, [add(at, lane * (stride or 0))])

    def panels(self, parts: Sequence[Part]) -> list[tuple[Part, ...]]:
        """Vectors that a tile holds at a time."""
        most = self._plan.vectors
        return [tuple(parts[i : i + most]) for i in range(0, len(parts), most)]

    def _over_panels(
        self,
        keys: Keys,
        rows: int,
        combine: Combine,
        neutral: float,
        body: Callable[[ir.Value, tuple[Part, ...]], list[list[ir.Value]]],
    ) -> list[ir.Value]:
        """Combines, for each row, all lanes of what the body computes for each panel of keys."""
        panels = self.panels(keys.parts)
        lanes, most = self._plan.lanes, self._plan.vectors
        full = [p for p in panels if len(p) == most and all(part.lanes == part.valid == lanes for part in p)]
        found: list[list[ir.Value]] = [[] for _ in range(rows)]
        if len(full) > 1:
            panels = panels[len(full) :]

            def step(at: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
                result = list(carried)
                for i, vectors in enumerate(body(at, full[0])):
                    for value in vectors:
                        result[i] = combine(value, result[i])
                return result

            start = [splat(neutral, lanes)] * rows
            totals = loop(index(0), index(len(full) * most * lanes), most * lanes, start, step)
            found = [[total] for total in totals]
        for panel in panels:
            relative = tuple(Part(part.offset - panel[0].offset, part.lanes, part.valid) for part in panel)
            for i, vectors in enumerate(body(index(panel[0].offset), relative)):
                found[i] += vectors
        return [reduce(vectors, combine) for vectors in found]

    def _products(self, tile: Tile, keys: Keys, at: ir.Value, parts: tuple[Part, ...]) -> list[ir.Value]:
        """Products of rows of Q with the keys from `at` in the block on."""
        plan = self._plan
        query_at = self._walk(plan.query, {OUTER: tile.outer}, tile, DEPTH)
        if self.packed_keys is None:
            position = {OUTER: tile.outer, KEY: arith.addi(keys.first, at)}
            key_at = _walk_one(plan.key, position, DEPTH)
            key_buffer, key_parts = self.buffer(plan.key), parts
        else:
            key_buffer, key_parts = self.packed_keys.memory, tuple(unmasked(part) for part in parts)

            def key_at(depth: ir.Value) -> ir.Value:
                return arith.addi(scaled(depth, self._key_pitch), at)

        query = self.buffer(plan.query)

        def step(depth: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
            base = key_at(depth)
            vectors = [load(key_buffer, add(base, part.offset), part) for part in key_parts]
            result = []
            for i in range(tile.rows):
                element = memref.load(query, [query_at(i, depth)])
                for j, part in enumerate(parts):
                    result.append(vector.fma(splat(element, part.lanes), vectors[j], sums[i * len(parts) + j]))
            return result

        zeros = [splat(0.0, part.lanes) for _ in range(tile.rows) for part in parts]
        return loop(index(0), index(plan.counts[DEPTH]), 1, zeros, step)

    def _score(self, product: ir.Value, position: dict[int, ir.Value], part: Part) -> ir.Value:
        """What follows the product; lanes that are no keys become -inf."""
        plan = self._plan
        if plan.initial != 0.0:
            product = arith.addf(product, self._argument(plan.initial, position, KEY, part, [], None))
        score = self._steps(plan.scores, product, position, KEY, part, None)
        if part.is_whole:
            return score
        return arith.select(mask(part), score, splat(MINUS_INFINITY, part.lanes))

    def _steps(
        self,
        steps: Sequence[PlannedStep],
        value: ir.Value,
        position: dict[int, ir.Value],
        lane: int,
        part: Part,
        total: ir.Value | None,
    ) -> ir.Value:
        results = [value]
        for step in steps:
            arguments = [self._argument(a, position, lane, part, results, total) for a in step.arguments]
            results.append(apply_body(step.body, arguments, part.lanes))
        return results[-1]

    def _argument(
        self,
        argument: Argument,
        position: dict[int, ir.Value],
        lane: int,
        part: Part,
        results: Sequence[ir.Value],
        total: ir.Value | None,
    ) -> ir.Value:
        if isinstance(argument, float):
            return splat(argument, part.lanes)
        if isinstance(argument, int):
            if argument == SUM:
                assert total is not None, "only the epilogue refers to the sum"
                return splat(total, part.lanes)
            return results[argument]
        at = address_of(argument, position)
        if argument.stride(lane) == 1:
            return load(self.buffer(argument), at, part)
        return splat(memref.load(self.buffer(argument), [at]), part.lanes)

    def _walk(
        self, operand: Operand, position: dict[int, ir.Value], tile: Tile, along: int
    ) -> Callable[[int, ir.Value], ir.Value]:
        """Addresses of an operand by row of the tile and position along a dimension; what is fixed is computed once."""
        step, down = operand.stride(along), operand.stride(ROW)
        if step is None:
            return lambda i, at: address_of(operand, {**position, ROW: tile.row(i), along: at})
        bases = [
            address_of(operand, {**position, ROW: tile.row(i)}) for i in range(1 if down is not None else tile.rows)
        ]
        if down is None:
            return lambda i, at: arith.addi(bases[i], scaled(at, step))
        return lambda i, at: add(arith.addi(bases[0], scaled(at, step)), i * down)

    def buffer(self, operand: Operand) -> ir.Value:
        return self._buffers[operand.source]


def _walk_one(
    operand: Operand, position: dict[int, ir.Value], along: int, first: ir.Value | None = None
) -> Callable[[ir.Value], ir.Value]:
    """Addresses by position along one dimension, counted from `first`."""
    step = operand.stride(along)
    if step is None:
        return lambda at: address_of(operand, {**position, along: at if first is None else arith.addi(first, at)})
    base = address_of(operand, position if first is None else {**position, along: first})
    return lambda at: arith.addi(base, scaled(at, step))


def address_of(operand: Operand, position: dict[int, ir.Value]) -> ir.Value:
    """The address at a position; dimensions that are not named are at 0."""
    dims = [dim(d) if d in position else ZERO for d in range(VALUE + 1)]
    return index_value(operand.address.substitute(dims), [position.get(d) for d in range(VALUE + 1)])


def unmasked(part: Part) -> Part:
    """The same vector in memory of ours, which has all lanes."""
    return Part(part.offset, part.lanes, part.lanes)


def _rows(count: int, pitch: int, lanes: int) -> Rows:
    return Rows(scratch(count * pitch), pitch, lanes)
