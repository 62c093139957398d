"""The body of an attention kernel for a CPU, as MLIR of the scf, vector and memref dialects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, memref, scf, vector

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
from smartmem_mlir.kernels.cpu.functions import exp_of_nonpositive
from smartmem_mlir.kernels.cpu.lanes import (
    Combine,
    Part,
    add,
    apply_body,
    cut,
    index,
    load,
    loop,
    maximum,
    number,
    reduce,
    scaled,
    splat,
    store,
    vector_type,
)
from smartmem_mlir.kernels.cpu.packing import pack
from smartmem_mlir.transforms.attention_group import SUM
from smartmem_mlir.transforms.view_code import index_value

_MINUS_INFINITY = float("-inf")


@dataclass(frozen=True)
class _Tile:
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
class _Keys:
    """A block of keys.

    Args:
        first: The first one.
        parts: The block as vectors.
        count: How many there are.
    """

    first: ir.Value
    parts: tuple[Part, ...]
    count: int


class AttentionEmitter:
    """Writes one kernel at the insertion point, the start of a function.

    Args:
        plan: The kernel.
        buffers: For each tensor that it reads, the memory as a one-dimensional memref.
        output: The memory of the result.
    """

    def __init__(self, plan: AttentionPlan, buffers: dict[Source, ir.Value], output: ir.Value) -> None:
        self._plan = plan
        self._buffers = buffers
        self._output = output
        keys, values = plan.block_keys, plan.counts[VALUE]
        self._key_pitch = padded(keys, plan.lanes)
        self._value_pitch = padded(values, plan.lanes)
        self._value_parts = cut(values, plan.lanes)
        self._scores = _scratch(plan.tile_rows * self._key_pitch)
        self._packed_keys = _scratch(plan.counts[DEPTH] * self._key_pitch) if plan.packs_key else None
        self._packed_values = _scratch(keys * self._value_pitch) if plan.packs_value else None
        rows = plan.block_rows if plan.online else 0
        self._results = _scratch(rows * self._value_pitch) if rows else None
        self._maxima = _scratch(rows) if rows else None
        self._sums = _scratch(rows) if rows else None

    def emit(self, outer_block: ir.Value, row_block: ir.Value) -> None:
        """Computes the workgroup at these indices."""
        plan = self._plan
        first, last = _range(outer_block, plan.block_outer, plan.counts[OUTER])
        row, end = _range(row_block, plan.block_rows, plan.counts[ROW])

        def matrix(outer: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            if plan.online:
                self._matrix_online(outer, row, end)
            else:
                keys = self._lay_out(outer, index(0), plan.counts[KEY])
                self._tiles(outer, row, end, lambda tile: self._tile(tile, keys))
            return []

        loop(first, last, 1, [], matrix)

    def _tiles(self, outer: ir.Value, row: ir.Value, end: ir.Value, body: Callable[[_Tile], None]) -> None:
        """Full tiles in a loop, then the rows that are left."""
        plan = self._plan
        tails = {
            min(plan.block_rows, plan.counts[ROW] - start) % plan.tile_rows
            for start in range(0, plan.counts[ROW], plan.block_rows)
        }
        rest = arith.remui(arith.subi(end, row), index(plan.tile_rows))
        full_end = arith.subi(end, rest)

        def full(first: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            body(_Tile(outer, first, arith.subi(first, row), plan.tile_rows))
            return []

        loop(row, full_end, plan.tile_rows, [], full)
        for tail in sorted(tails - {0}):
            branch = scf.IfOp(arith.cmpi(arith.CmpIPredicate.eq, rest, index(tail)))
            with ir.InsertionPoint(branch.then_block):
                body(_Tile(outer, full_end, arith.subi(full_end, row), tail))
                scf.YieldOp([])

    def _lay_out(self, outer: ir.Value, first: ir.Value, count: int) -> _Keys:
        """Brings a block of K, and of V, into the order that tiles read."""
        plan = self._plan

        if self._packed_keys is not None:

            def key_at(depth: ir.Value, key: ir.Value) -> ir.Value:
                return _address(plan.key, {OUTER: outer, KEY: arith.addi(first, key), DEPTH: depth})

            unit = plan.key.stride(DEPTH) == 1
            shape = (plan.counts[DEPTH], count)
            pack(self._buffer(plan.key), key_at, shape, unit, self._packed_keys, self._key_pitch, plan.lanes)
        if self._packed_values is not None:

            def value_at(key: ir.Value, value: ir.Value) -> ir.Value:
                return _address(plan.value, {OUTER: outer, KEY: arith.addi(first, key), VALUE: value})

            unit = plan.value.stride(KEY) == 1
            shape = (count, plan.counts[VALUE])
            pack(self._buffer(plan.value), value_at, shape, unit, self._packed_values, self._value_pitch, plan.lanes)
        return _Keys(first, tuple(cut(count, plan.lanes)), count)

    def _tile(self, tile: _Tile, keys: _Keys) -> None:
        """Rows against all keys."""
        maxima, kept = self._scores_of(tile, keys)
        sums = self._weights_of(tile, keys, maxima, kept)
        for parts in self._panels(self._value_parts):
            zeros = [splat(0.0, part.lanes) for _ in range(tile.rows) for part in parts]
            results = self._weighted(tile, keys, parts, zeros)
            for i in range(tile.rows):
                of_row = results[i * len(parts) : (i + 1) * len(parts)]
                self._finish(tile.outer, tile.row(i), parts, of_row, sums[i])

    def _matrix_online(self, outer: ir.Value, row: ir.Value, end: ir.Value) -> None:
        """Rows against one block of keys after the other."""
        plan = self._plan
        maxima, sums, results = self._maxima, self._sums, self._results
        assert maxima is not None
        assert sums is not None
        assert results is not None
        count = arith.subi(end, row)
        whole = cut(self._value_pitch, plan.lanes)

        def start(i: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            memref.StoreOp(number(_MINUS_INFINITY), maxima, [i])
            memref.StoreOp(number(0.0), sums, [i])
            at = scaled(i, self._value_pitch)
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
            at = scaled(i, self._value_pitch)
            for parts in self._panels(self._value_parts):
                loaded = [load(results, add(at, part.offset), _unmasked(part)) for part in parts]
                self._finish(outer, arith.addi(row, i), parts, loaded, total)
            return []

        loop(index(0), count, 1, [], start)
        rest = plan.counts[KEY] % plan.block_keys
        loop(index(0), index(plan.counts[KEY] - rest), plan.block_keys, [], full_block)
        if rest:
            block(index(plan.counts[KEY] - rest), rest)
        loop(index(0), count, 1, [], finish)

    def _tile_online(self, tile: _Tile, keys: _Keys) -> None:
        maxima, sums, results = self._maxima, self._sums, self._results
        assert maxima is not None
        assert sums is not None
        assert results is not None
        block_maxima, kept = self._scores_of(tile, keys)
        used, corrections = [], []
        for i in range(tile.rows):
            local = add(tile.local_row, i)
            before = memref.load(maxima, [local])
            now = maximum(block_maxima[i], before)
            memref.StoreOp(now, maxima, [local])
            # A row without any key so far has no maximum: its weights are exp(-inf - 0).
            none = arith.cmpf(arith.CmpFPredicate.OEQ, now, number(_MINUS_INFINITY))
            used.append(arith.select(none, number(0.0), now))
            correction = exp_of_nonpositive(splat(arith.subf(before, used[-1]), self._plan.lanes))
            corrections.append(vector.extract(correction, [], [0]))
        block_sums = self._weights_of(tile, keys, used, kept)
        for i in range(tile.rows):
            local = add(tile.local_row, i)
            total = arith.mulf(memref.load(sums, [local]), corrections[i])
            memref.StoreOp(arith.addf(total, block_sums[i]), sums, [local])
        for parts in self._panels(self._value_parts):
            places = [
                (i, add(scaled(add(tile.local_row, i), self._value_pitch), part.offset), _unmasked(part))
                for i in range(tile.rows)
                for part in parts
            ]
            before = [arith.mulf(load(results, at, part), splat(corrections[i], part.lanes)) for i, at, part in places]
            for value, (_, at, part) in zip(self._weighted(tile, keys, parts, before), places, strict=True):
                store(value, results, at, part)

    def _panels(self, parts: Sequence[Part]) -> list[tuple[Part, ...]]:
        """Vectors that a tile holds at a time."""
        most = self._plan.vectors
        return [tuple(parts[i : i + most]) for i in range(0, len(parts), most)]

    def _over_panels(
        self,
        keys: _Keys,
        rows: int,
        combine: Combine,
        neutral: float,
        body: Callable[[ir.Value, tuple[Part, ...]], list[list[ir.Value]]],
    ) -> list[ir.Value]:
        """Combines, for each row, all lanes of what the body computes for each panel of keys."""
        panels = self._panels(keys.parts)
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

    def _scores_of(self, tile: _Tile, keys: _Keys) -> tuple[list[ir.Value], list[list[ir.Value]] | None]:
        """Each row's maximum; the scores go to the scratch, or are kept when there is but one panel."""
        single = len(self._panels(keys.parts)) == 1
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
                        store(score, self._scores, add(at, i * self._key_pitch + part.offset), _unmasked(part))
                    row.append(score)
                rows.append(row)
            kept.extend(rows)
            return rows

        maxima = self._over_panels(keys, tile.rows, maximum, _MINUS_INFINITY, panel)
        return maxima, kept if single else None

    def _products(self, tile: _Tile, keys: _Keys, at: ir.Value, parts: tuple[Part, ...]) -> list[ir.Value]:
        """Products of rows of Q with the keys from `at` in the block on."""
        plan = self._plan
        query_at = self._walk(plan.query, {OUTER: tile.outer}, tile, DEPTH)
        if self._packed_keys is None:
            position = {OUTER: tile.outer, KEY: arith.addi(keys.first, at)}
            key_at = _walk_one(plan.key, position, DEPTH)
            key_buffer, key_parts = self._buffer(plan.key), parts
        else:
            key_buffer, key_parts = self._packed_keys, tuple(_unmasked(part) for part in parts)

            def key_at(depth: ir.Value) -> ir.Value:
                return arith.addi(scaled(depth, self._key_pitch), at)

        query = self._buffer(plan.query)

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
        lanes = vector.create_mask(vector_type(part.lanes, ir.IntegerType.get_signless(1)), [index(part.valid)])
        return arith.select(lanes, score, splat(_MINUS_INFINITY, part.lanes))

    def _weights_of(
        self, tile: _Tile, keys: _Keys, maxima: Sequence[ir.Value], kept: list[list[ir.Value]] | None
    ) -> list[ir.Value]:
        """Turns scores into exp(score - maximum), in the scratch, and gives each row's sum."""

        def panel(at: ir.Value, parts: tuple[Part, ...]) -> list[list[ir.Value]]:
            rows = []
            for i in range(tile.rows):
                row = []
                for j, part in enumerate(parts):
                    place = add(at, i * self._key_pitch + part.offset)
                    score = load(self._scores, place, _unmasked(part)) if kept is None else kept[i][j]
                    weight = exp_of_nonpositive(arith.subf(score, splat(maxima[i], part.lanes)))
                    store(weight, self._scores, place, _unmasked(part))
                    row.append(weight)
                rows.append(row)
            return rows

        return self._over_panels(keys, tile.rows, arith.addf, 0.0, panel)

    def _weighted(self, tile: _Tile, keys: _Keys, parts: Sequence[Part], start: Sequence[ir.Value]) -> list[ir.Value]:
        """`start` plus the weights in the scratch times columns of V."""
        plan = self._plan
        if self._packed_values is None:
            value_buffer, value_parts = self._buffer(plan.value), list(parts)
            value_at = _walk_one(plan.value, {OUTER: tile.outer}, KEY, keys.first)
        else:
            value_buffer, value_parts = self._packed_values, [_unmasked(part) for part in parts]

            def value_at(key: ir.Value) -> ir.Value:
                return scaled(key, self._value_pitch)

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

    def _finish(
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
            at = _address(plan.output, position)
            stride = plan.output.stride(VALUE)
            if stride == 1:
                store(value, self._output, at, part)
                continue
            for lane in range(part.valid):
                element = vector.extract(value, [], [lane])
                memref.StoreOp(element, self._output, [add(at, lane * (stride or 0))])

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
        at = _address(argument, position)
        if argument.stride(lane) == 1:
            return load(self._buffer(argument), at, part)
        return splat(memref.load(self._buffer(argument), [at]), part.lanes)

    def _walk(
        self, operand: Operand, position: dict[int, ir.Value], tile: _Tile, along: int
    ) -> Callable[[int, ir.Value], ir.Value]:
        """Addresses of an operand by row of the tile and position along a dimension; what is fixed is computed once."""
        step, down = operand.stride(along), operand.stride(ROW)
        if step is None:
            return lambda i, at: _address(operand, {**position, ROW: tile.row(i), along: at})
        bases = [_address(operand, {**position, ROW: tile.row(i)}) for i in range(1 if down is not None else tile.rows)]
        if down is None:
            return lambda i, at: arith.addi(bases[i], scaled(at, step))
        return lambda i, at: add(arith.addi(bases[0], scaled(at, step)), i * down)

    def _buffer(self, operand: Operand) -> ir.Value:
        return self._buffers[operand.source]


def _walk_one(
    operand: Operand, position: dict[int, ir.Value], along: int, first: ir.Value | None = None
) -> Callable[[ir.Value], ir.Value]:
    """Addresses by position along one dimension, counted from `first`."""
    step = operand.stride(along)
    if step is None:
        return lambda at: _address(operand, {**position, along: at if first is None else arith.addi(first, at)})
    base = _address(operand, position if first is None else {**position, along: first})
    return lambda at: arith.addi(base, scaled(at, step))


def _address(operand: Operand, position: dict[int, ir.Value]) -> ir.Value:
    """The address at a position; dimensions that are not named are at 0."""
    dims = [dim(d) if d in position else ZERO for d in range(VALUE + 1)]
    return index_value(operand.address.substitute(dims), [position.get(d) for d in range(VALUE + 1)])


def _range(block: ir.Value, size: int, total: int) -> tuple[ir.Value, ir.Value]:
    start = scaled(block, size)
    end = add(start, size)
    return start, end if total % size == 0 else arith.minsi(end, index(total))


def _unmasked(part: Part) -> Part:
    """The same vector in memory of ours, which has all lanes."""
    return Part(part.offset, part.lanes, part.lanes)


def _scratch(count: int) -> ir.Value:
    """f32 memory on the stack."""
    type_ = ir.MemRefType.get([count], ir.F32Type.get())
    return memref.AllocaOp(type_, [], []).result
