"""The body of a convolution by minimal filtering for a CPU, as MLIR of the scf, vector and memref dialects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

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
    scaled,
    splat,
    store,
)
from smartmem_mlir.kernels.cpu.winograd_plan import OUTPUTS, WinogradPlan, lane_address
from smartmem_mlir.kernels.cpu.winograd_transforms import both_axes, by_columns, by_rows, cells
from smartmem_mlir.transforms.contraction_group import Read
from smartmem_mlir.transforms.view_code import index_value
from smartmem_mlir.transforms.view_ops import shape_of, splat_constant


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


@dataclass(frozen=True)
class _Factors:
    """What is multiplied by a panel of weights, and where the products go.

    Args:
        rows: Groups of tiles.
        inputs: Transformed inputs in scratch memory.
        products: Products in scratch memory.
    """

    rows: ir.Value
    inputs: ir.Value
    products: ir.Value


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
                self._multiply(p, rows, inputs, products)
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
            for (a, b), value in cells(both_axes(matrix, read, by_rows)):
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

    def _multiply(self, panel: ir.Value, rows: ir.Value, inputs: ir.Value, products: ir.Value) -> None:
        """The products of all held tiles with a panel of the weights."""
        plan = self._plan
        factors = _Factors(rows, inputs, products)
        filters = add(inputs, plan.inputs_size + plan.products_size)
        size = plan.depth_block

        def block(first: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            count = index(size)
            if plan.depth % size:
                count = arith.minsi(count, arith.subi(index(plan.depth), first))
            self._transform_filters(panel, first, count, filters)

            def multiply(place: ir.Value) -> None:
                strip = add(filters, scaled(place, plan.filters_pitch))
                self._multiply_place(factors, place, strip, first, count)

            self._each(index(self._products), multiply)
            return []

        loop(index(0), index(plan.depth), size, [], block)

    def _transform_filters(self, panel: ir.Value, first: ir.Value, count: ir.Value, filters: ir.Value) -> None:
        """The filters of a panel for some channels of the input, as the products need them."""
        plan, width = self._plan, self._plan.panel_width
        taps, matrix = plan.filtering.taps, plan.filtering.filter
        weights, parts = self._buffers[plan.group.rhs.value], cut(width, plan.lanes)
        strip = add(scaled(panel, plan.depth * width), scaled(first, width))
        step = plan.num_panels * plan.depth * width

        def channel(k: ir.Value) -> None:
            offset = scaled(k, width)
            source, target = arith.addi(strip, offset), arith.addi(filters, offset)
            for part in parts:
                whole = Part(part.offset, part.lanes, part.lanes)
                read = [
                    [load(weights, add(source, (i * taps + j) * step + part.offset), whole) for j in range(taps)]
                    for i in range(taps)
                ]
                for (a, b), value in cells(both_axes(matrix, read, by_rows)):
                    place = (a * len(matrix) + b) * plan.filters_pitch
                    vector.StoreOp(value, self._scratch, [add(target, place + part.offset)])

        self._each(count, channel)

    def _multiply_place(
        self, factors: _Factors, place: ir.Value, strip: ir.Value, first_channel: ir.Value, count: ir.Value
    ) -> None:
        """The products of one place of all held tiles with filters of so many channels, which are at `strip`."""
        plan = self._plan
        width, parts = plan.panel_width, cut(plan.panel_width, plan.lanes)
        first = add(arith.addi(factors.inputs, scaled(place, plan.held_tiles * plan.pitch)), first_channel)
        target = arith.addi(factors.products, scaled(place, plan.held_tiles * width))

        def of_row(row: ir.Value) -> None:
            tile = scaled(row, plan.tile_rows)
            source = arith.addi(first, scaled(tile, plan.pitch))
            at = arith.addi(target, scaled(tile, width))
            places = [add(at, i * width + part.offset) for i in range(plan.tile_rows) for part in parts]
            before = [splat(0.0, part.lanes) for part in parts] * plan.tile_rows
            if plan.depth_blocks > 1:
                # Of the blocks before this one; nothing is before the first.
                begins = arith.cmpi(arith.CmpIPredicate.eq, first_channel, index(0))
                for i, zero in enumerate(before):
                    sums_so_far = vector.load(zero.type, self._scratch, [places[i]])
                    before[i] = arith.select(begins, zero, sums_so_far)

            def step(k: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
                of_channel = arith.addi(strip, scaled(k, width))
                panel = [load(self._scratch, add(of_channel, part.offset), part) for part in parts]
                element = arith.addi(source, k)
                result = []
                for i in range(plan.tile_rows):
                    factor = memref.load(self._scratch, [add(element, i * plan.pitch)])
                    of_tile = zip(parts, panel, sums[i * len(parts) :], strict=False)
                    result += [vector.fma(splat(factor, part.lanes), value, total) for part, value, total in of_tile]
                return result

            sums = loop(index(0), count, 1, before, step)
            for total, where in zip(sums, places, strict=True):
                vector.StoreOp(total, self._scratch, [where])

        self._each(factors.rows, of_row)

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
            for (i, j), total in cells(both_axes(plan.filtering.output, made, by_columns)):
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
