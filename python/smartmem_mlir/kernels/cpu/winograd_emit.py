"""The body of a convolution by minimal filtering for a CPU, as MLIR of the scf, vector and memref dialects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from mlir import ir
from mlir.dialects import arith, memref, scf, vector

from smartmem_mlir.index_maps.box import Box
from smartmem_mlir.index_maps.expr import Dim, Expr, delinearize, dim
from smartmem_mlir.kernels.cpu.borders import write_borders
from smartmem_mlir.kernels.cpu.epilogue import after_sum
from smartmem_mlir.kernels.cpu.lanes import (
    Part,
    add,
    block_range,
    cut,
    index,
    load,
    loop,
    number,
    prefetch,
    scaled,
    splat,
    store,
)
from smartmem_mlir.kernels.cpu.winograd_plan import OUTPUTS, WinogradPlan, lane_address
from smartmem_mlir.kernels.winograd import Matrix
from smartmem_mlir.transforms.contraction_group import Read
from smartmem_mlir.transforms.view_code import index_value
from smartmem_mlir.transforms.view_ops import shape_of, splat_constant

Grid = list[list[ir.Value]]


@dataclass(frozen=True)
class _Tile:
    """A tile of a group of channels.

    Args:
        images: Its image, one index for each image dimension.
        groups: Its group, one index for each dimension that counts groups.
        y: Row of its first output.
        x: Column of it.
        new_y: Outputs before this row are another tile's; None where there are none.
        new_x: The same for columns.
    """

    images: tuple[ir.Value, ...]
    groups: tuple[ir.Value, ...]
    y: ir.Value
    x: ir.Value
    new_y: ir.Value | None
    new_x: ir.Value | None


class WinogradEmitter:
    """Writes one kernel at the insertion point.

    Args:
        plan: The kernel.
        buffers: For each tensor that it reads, and for its result, the memory as a one-dimensional memref.
        scratch: Memory for all workgroups.
    """

    def __init__(self, plan: WinogradPlan, buffers: dict[ir.Value, ir.Value], scratch: ir.Value) -> None:
        self._plan = plan
        self._buffers = buffers
        self._scratch = scratch
        self._products = plan.filtering.size**2

    def emit(self, panel_block: ir.Value, row_block: ir.Value) -> None:
        """Computes the workgroup at these indices."""
        plan = self._plan
        panel, last_panel = block_range(panel_block, plan.block_panels, plan.num_panels)
        row, last_row = block_range(row_block, plan.block_rows, plan.num_rows)
        number_ = add(scaled(row_block, plan.workgroups[0]), panel_block)
        inputs = scaled(number_, plan.scratch_size)
        products = add(inputs, plan.inputs_size)

        def held(first: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            rows = arith.minsi(index(plan.held), arith.subi(last_row, first))
            tiles = scaled(rows, plan.tile_rows)
            origin = scaled(first, plan.tile_rows)

            def of_panel(p: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
                def transform(t: ir.Value) -> None:
                    self._transform_inputs(self._tile(arith.addi(origin, t), p), inputs, t)

                self._at_new_inputs(p, panel, lambda: self._each(tiles, transform))
                self._each(index(self._products), lambda place: self._multiply(place, p, rows, inputs, products))
                self._each(tiles, lambda t: self._finish(self._tile(arith.addi(origin, t), p), p, products, t))
                return []

            loop(panel, last_panel, 1, [], of_panel)
            return []

        loop(row, last_row, plan.held, [], held)
        output = plan.group.output.value
        write_borders(self._buffers[output], shape_of(output), plan.group.border, plan.lanes, [panel_block, row_block])

    def _at_new_inputs(self, panel: ir.Value, first: ir.Value, body: Callable[[], None]) -> None:
        """Runs the body at the first panel of a workgroup and of each group."""
        count = self._plan.panels_per_group
        if count == 1:
            body()
            return
        starts = arith.cmpi(arith.CmpIPredicate.eq, arith.remui(panel, index(count)), index(0))
        branch = scf.IfOp(arith.ori(starts, arith.cmpi(arith.CmpIPredicate.eq, panel, first)))
        with ir.InsertionPoint(branch.then_block):
            body()
            scf.YieldOp([])

    def _each(self, count: ir.Value, body: Callable[[ir.Value], None]) -> None:
        def step(i: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            body(i)
            return []

        loop(index(0), count, 1, [], step)

    def _tile(self, number_: ir.Value, panel: ir.Value) -> _Tile:
        """The tile with this number in a panel's group; those after the last one are the last one again."""
        plan = self._plan
        if plan.num_tiles % plan.tile_rows:
            number_ = arith.minsi(number_, index(plan.num_tiles - 1))
        *images, y, x = (index_value(expr, [number_]) for expr in delinearize(dim(0), plan.tiles))
        (y, new_y), (x, new_x) = (
            self._moved(scaled(tile, OUTPUTS), plan.extents[d]) for tile, d in ((y, plan.places.y), (x, plan.places.x))
        )
        *groups, _ = delinearize(dim(0), (*plan.groups, plan.panels_per_group))
        return _Tile(tuple(images), tuple(index_value(expr, [panel]) for expr in groups), y, x, new_y, new_x)

    @staticmethod
    def _moved(start: ir.Value, extent: int) -> tuple[ir.Value, ir.Value | None]:
        """Where a tile starts that would start here, and where its own outputs start if that is not the same."""
        if extent % OUTPUTS == 0:
            return start, None
        return arith.minsi(start, index(extent - OUTPUTS)), start

    def _indices(self, tile: _Tile, y: ir.Value, x: ir.Value) -> list[ir.Value | None]:
        """Indices of the iteration space at an output of a tile."""
        places = self._plan.places
        at: list[ir.Value | None] = [None] * len(self._plan.extents)
        dimensions = (*places.images, *places.groups, places.y, places.x)
        for d, value in zip(dimensions, (*tile.images, *tile.groups, y, x), strict=True):
            at[d] = value
        return at

    def _transform_inputs(self, tile: _Tile, inputs: ir.Value, t: ir.Value) -> None:
        plan, places = self._plan, self._plan.places
        size, matrix = plan.filtering.size, plan.filtering.data
        outer = plan.data
        for d in (places.tap_y, places.tap_x, places.depth):
            outer = outer - Expr(0, ((Dim(d), plan.data.coefficient(Dim(d))),))
        base = index_value(outer, self._indices(tile, tile.y, tile.x))
        pitch_y, pitch_x = (plan.data.coefficient(Dim(d)) for d in (places.y, places.x))
        buffer = self._buffers[plan.group.lhs.reads[0].value]
        target = arith.addi(inputs, scaled(t, plan.pitch))

        def channels(at: ir.Value, part: Part) -> None:
            start = arith.addi(base, at)
            read = [
                [load(buffer, add(start, i * pitch_y + j * pitch_x), part) for j in range(size)] for i in range(size)
            ]
            for (a, b), value in _cells(_both(matrix, read, _by_rows)):
                place = (a * size + b) * plan.held_tiles * plan.pitch
                vector.StoreOp(value, self._scratch, [add(arith.addi(target, at), place)])

        parts = cut(plan.depth, plan.lanes)
        whole = [part for part in parts if part.lanes == part.valid == plan.lanes]
        if whole:

            def step(at: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
                channels(at, whole[0])
                return []

            loop(index(0), index(len(whole) * plan.lanes), plan.lanes, [], step)
        for part in parts[len(whole) :]:
            channels(index(part.offset), part)

    def _multiply(self, place: ir.Value, panel: ir.Value, rows: ir.Value, inputs: ir.Value, products: ir.Value) -> None:
        """The products of one place of all held tiles with a panel of the weights."""
        plan = self._plan
        width, parts = plan.panel_width, cut(plan.panel_width, plan.lanes)
        weights = self._buffers[plan.group.rhs.value]
        weight = scaled(add(scaled(place, plan.num_panels), panel), plan.depth * width)
        first = arith.addi(inputs, scaled(place, plan.held_tiles * plan.pitch))
        target = arith.addi(products, scaled(place, plan.held_tiles * width))

        def of_row(row: ir.Value) -> None:
            tile = scaled(row, plan.tile_rows)
            source = arith.addi(first, scaled(tile, plan.pitch))
            zeros = [splat(0.0, part.lanes) for part in parts] * plan.tile_rows

            def step(k: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
                at = arith.addi(weight, scaled(k, width))
                panel_ = [load(weights, add(at, part.offset), part) for part in parts]
                # What the next panel reads here: a strip of a few KiB, too short for the CPU to foresee the next.
                prefetch(weights, add(at, plan.depth * width), width)
                element = arith.addi(source, k)
                result = []
                for i in range(plan.tile_rows):
                    factor = memref.load(self._scratch, [add(element, i * plan.pitch)])
                    of_tile = zip(parts, panel_, sums[i * len(parts) :], strict=False)
                    result += [vector.fma(splat(factor, part.lanes), value, total) for part, value, total in of_tile]
                return result

            sums = loop(index(0), index(plan.depth), 1, zeros, step)
            at = arith.addi(target, scaled(tile, width))
            for i, total in enumerate(sums):
                tile_, part = divmod(i, len(parts))
                vector.StoreOp(total, self._scratch, [add(at, tile_ * width + parts[part].offset)])

        self._each(rows, of_row)

    def _finish(self, tile: _Tile, panel: ir.Value, products: ir.Value, t: ir.Value) -> None:
        """The outputs of a tile in a panel's channels: all of them, or those that the last panel has."""
        plan = self._plan
        count = plan.panels_per_group
        panel = index_value(dim(0) % count, [panel])
        rest = plan.channels - (count - 1) * plan.panel_width
        if rest == plan.panel_width or count == 1:
            self._outputs(tile, panel, products, t, rest)
            return
        branch = scf.IfOp(arith.cmpi(arith.CmpIPredicate.eq, panel, index(count - 1)), has_else=True)
        for block, width in ((branch.then_block, rest), (branch.else_block, plan.panel_width)):
            with ir.InsertionPoint(block):
                self._outputs(tile, panel, products, t, width)
                scf.YieldOp([])

    def _outputs(self, tile: _Tile, panel: ir.Value, products: ir.Value, t: ir.Value, width: int) -> None:
        """The outputs of a tile in the first `width` channels of a panel, which is counted within its group."""
        plan, size = self._plan, self._plan.filtering.size
        source = arith.addi(products, scaled(t, plan.panel_width))
        first = scaled(panel, plan.panel_width)
        step = plan.held_tiles * plan.panel_width
        for part in cut(width, plan.lanes):
            whole = Part(part.offset, part.lanes, part.lanes)
            made = [
                [load(self._scratch, add(source, (a * size + b) * step + part.offset), whole) for b in range(size)]
                for a in range(size)
            ]
            for (i, j), total in _cells(_both(plan.filtering.output, made, _by_columns)):
                self._output(tile, (i, j), add(first, part.offset), part, total)

    def _output(self, tile: _Tile, place: tuple[int, int], channel: ir.Value, part: Part, total: ir.Value) -> None:
        """What follows the sum for one output of a tile, unless another tile has it."""
        y, x = add(tile.y, place[0]), add(tile.x, place[1])
        condition: ir.Value | None = None
        for at, first, offset in ((y, tile.new_y, place[0]), (x, tile.new_x, place[1])):
            # The last output of a tile is always its own.
            if first is not None and offset < OUTPUTS - 1:
                new = arith.cmpi(arith.CmpIPredicate.sge, at, first)
                condition = new if condition is None else arith.andi(condition, new)
        if condition is None:
            self._write(self._indices(tile, y, x), channel, part, total)
            return
        branch = scf.IfOp(condition)
        with ir.InsertionPoint(branch.then_block):
            self._write(self._indices(tile, y, x), channel, part, total)
            scf.YieldOp([])

    def _write(self, at: Sequence[ir.Value | None], channel: ir.Value, part: Part, total: ir.Value) -> None:
        group = self._plan.group
        result = after_sum(group, total, lambda read: self._read(read, at, channel, part))
        place, _ = self._address(group.output, at)
        store(result, self._buffers[group.output.value], arith.addi(place, channel), part)

    def _read(self, read: Read, at: Sequence[ir.Value | None], channel: ir.Value, part: Part) -> ir.Value:
        constant = splat_constant(read.value)
        if constant is not None:
            return splat(number(float(constant)), part.lanes)
        place, lanes = self._address(read, at)
        buffer = self._buffers[read.value]
        if lanes == 0:
            return splat(memref.load(buffer, [place]), part.lanes)
        return load(buffer, arith.addi(place, channel), part)

    def _address(self, read: Read, at: Sequence[ir.Value | None]) -> tuple[ir.Value, int]:
        address = lane_address(read, self._plan.places, Box.of(self._plan.extents))
        assert address is not None, "the plan has checked every address"
        return index_value(address[0], at), address[1]


def _cells(grid: Grid) -> list[tuple[tuple[int, int], ir.Value]]:
    return [((a, b), grid[a][b]) for a, b in product(range(len(grid)), range(len(grid[0])))]


def _both(matrix: Matrix, grid: Grid, apply: Callable[[Matrix, Sequence[ir.Value]], list[ir.Value]]) -> Grid:
    """M X M^T."""
    rows = [apply(matrix, row) for row in grid]
    columns = [apply(matrix, [row[b] for row in rows]) for b in range(len(matrix))]
    return [[column[a] for column in columns] for a in range(len(matrix))]


def _by_rows(matrix: Matrix, values: Sequence[ir.Value]) -> list[ir.Value]:
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


def _by_columns(matrix: Matrix, values: Sequence[ir.Value]) -> list[ir.Value]:
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
