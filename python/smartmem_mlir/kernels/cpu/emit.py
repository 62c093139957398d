"""The body of a contraction kernel for a CPU, as MLIR of the scf, vector and memref dialects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from mlir import ir
from mlir.dialects import arith, memref, scf, vector

from smartmem_mlir.index_maps.expr import Expr
from smartmem_mlir.kernels.addresses import FIRST_REDUCTION, SplitAddress, split_address
from smartmem_mlir.kernels.cpu.borders import write_borders
from smartmem_mlir.kernels.cpu.epilogue import after_sum
from smartmem_mlir.kernels.cpu.lanes import Part, add, block_range, cut, load, splat, store, vector_type
from smartmem_mlir.kernels.cpu.plan import KernelPlan, Storage
from smartmem_mlir.transforms.contraction_group import Read
from smartmem_mlir.transforms.structured import element_type
from smartmem_mlir.transforms.view_code import index_value
from smartmem_mlir.transforms.view_ops import shape_of, splat_constant

UNROLLED_TRIPS = 8
"""A loop over the reduction of at most this many trips is unrolled."""


@dataclass(frozen=True)
class _Tile:
    """The rows and lanes of one register tile.

    Args:
        first_row: Index of its first row.
        panel: Index of its panel.
        rows: Number of rows.
        parts: Its vectors; the last may be narrower than the others, or masked.
    """

    first_row: ir.Value
    panel: ir.Value
    rows: int
    parts: tuple[Part, ...]


class ContractionEmitter:
    """Writes one kernel at the insertion point.

    Args:
        plan: The kernel.
        buffers: For each tensor that it reads, and for its result, the memory as a one-dimensional memref.
    """

    def __init__(self, plan: KernelPlan, buffers: dict[ir.Value, ir.Value]) -> None:
        self._plan = plan
        self._buffers = buffers

    def emit(self, panel_block: ir.Value, row_block: ir.Value) -> None:
        """Computes the workgroup at these indices."""
        plan = self._plan
        first, last = block_range(panel_block, plan.block_panels, plan.tiling.num_panels)
        row, end = block_range(row_block, plan.block_rows, plan.tiling.num_rows)
        loop = scf.ForOp(first, last, _index(1))
        with ir.InsertionPoint(loop.body):
            self._panel(loop.induction_variable, row, end)
            scf.YieldOp([])
        output = plan.group.output.value
        write_borders(self._buffers[output], shape_of(output), plan.group.border, plan.lanes, [panel_block, row_block])

    def _panel(self, panel: ir.Value, row: ir.Value, end: ir.Value) -> None:
        """All rows of one panel; the last panel of the lane range may be narrower than the others."""
        tiling, lanes = self._plan.tiling, self._plan.lanes
        count, extent = tiling.panels_per_lane_range, tiling.extents[tiling.lane]
        full, narrow = (tuple(cut(n, lanes)) for n in (tiling.panel_width, extent - (count - 1) * tiling.panel_width))
        if narrow == full or count == 1:
            self._rows(panel, row, end, narrow)
            return
        position = arith.remui(panel, _index(count))
        is_last = arith.cmpi(arith.CmpIPredicate.eq, position, _index(count - 1))
        self._if(is_last, lambda: self._rows(panel, row, end, narrow), lambda: self._rows(panel, row, end, full))

    def _rows(self, panel: ir.Value, row: ir.Value, end: ir.Value, parts: tuple[Part, ...]) -> None:
        plan = self._plan
        tails = {
            min(plan.block_rows, plan.tiling.num_rows - start) % plan.tile_rows
            for start in range(0, plan.tiling.num_rows, plan.block_rows)
        }
        rest = arith.remui(arith.subi(end, row), _index(plan.tile_rows))
        full_end = arith.subi(end, rest)
        loop = scf.ForOp(row, full_end, _index(plan.tile_rows))
        with ir.InsertionPoint(loop.body):
            self._tile(_Tile(loop.induction_variable, panel, plan.tile_rows, parts))
            scf.YieldOp([])
        for tail in sorted(tails - {0}):
            this = arith.cmpi(arith.CmpIPredicate.eq, rest, _index(tail))
            self._if(this, partial(self._tile, _Tile(full_end, panel, tail, parts)))

    def _tile(self, tile: _Tile) -> None:
        sums = self._sums(tile)
        for i in range(tile.rows):
            row = tile.first_row if i == 0 else arith.addi(tile.first_row, _index(i))
            for j, part in enumerate(tile.parts):
                self._finish(tile, row, part, sums[i * len(tile.parts) + j])

    def _sums(self, tile: _Tile) -> list[ir.Value]:
        plan = self._plan
        lhs = [self._row_addresses(address, tile) for address in plan.lhs]
        bounds = self._part_bounds()
        rhs_base = index_value(plan.rhs.outer, [None, tile.panel])
        extents = plan.tiling.reduction_extents

        def nest(level: int, part: int, indices: list[ir.Value], sums: list[ir.Value]) -> list[ir.Value]:
            if level == len(extents):
                return self._step(tile, part, lhs[part], rhs_base, indices, sums)
            if plan.tiling.reductions[level] == plan.group.lhs.dimension:
                for number, (start, stop) in enumerate(bounds):
                    sums = trips(level, number, start, stop, indices, sums)
                return sums
            return trips(level, part, 0, extents[level], indices, sums)

        def trips(
            level: int, part: int, start: int, stop: int, indices: list[ir.Value], sums: list[ir.Value]
        ) -> list[ir.Value]:
            if stop - start <= UNROLLED_TRIPS and level == len(extents) - 1:
                for trip in range(start, stop):
                    sums = nest(level + 1, part, [*indices, _index(trip)], sums)
                return sums
            loop = scf.ForOp(_index(start), _index(stop), _index(1), sums)
            with ir.InsertionPoint(loop.body):
                inner = nest(level + 1, part, [*indices, loop.induction_variable], list(loop.inner_iter_args))
                scf.YieldOp(inner)
            return list(loop.results)

        return nest(0, 0, [], [splat(0.0, part.lanes) for part in tile.parts] * tile.rows)

    def _part_bounds(self) -> list[tuple[int, int]]:
        """Start and stop of each part of the left factor along the dimension that it is stacked along."""
        lhs = self._plan.group.lhs
        if lhs.dimension is None:
            return []
        stops = [*lhs.starts[1:], self._plan.tiling.extents[lhs.dimension]]
        return list(zip(lhs.starts, stops, strict=True))

    def _step(
        self,
        tile: _Tile,
        part: int,
        lhs_rows: Sequence[tuple[ir.Value, int]],
        rhs_base: ir.Value,
        indices: Sequence[ir.Value],
        sums: Sequence[ir.Value],
    ) -> list[ir.Value]:
        """One trip of the reduction: vectors of the panel times an element (or a vector) of each row."""
        plan, group = self._plan, self._plan.group
        at = [None] * FIRST_REDUCTION + list(indices)
        rhs_at = self._add(rhs_base, plan.rhs.inner, at)
        parts = tile.parts
        if plan.storage is Storage.PANELS:
            parts = tuple(replace(part, valid=part.lanes) for part in parts)
        rhs = [self._load(group.rhs.value, rhs_at, part) for part in parts]
        if plan.scale is not None and group.scale is not None:
            scale_at = index_value(plan.scale.outer + plan.scale.inner, at)
            scale = memref.load(self._buffers[group.scale.read.value], [scale_at])
            rhs = [arith.mulf(value, splat(scale, part.lanes)) for value, part in zip(rhs, parts, strict=True)]
        lhs, value = plan.lhs[part], group.lhs.reads[part].value
        inner = None if lhs.inner == Expr(0) else index_value(lhs.inner, at)
        # A part of a joined tensor that is the same everywhere is in no memory.
        constant = splat_constant(value)
        result = list(sums)
        for i, (base, offset) in enumerate(lhs_rows):
            address = base if inner is None else arith.addi(base, inner)
            address = address if offset == 0 else arith.addi(address, _index(offset))
            if constant is not None:
                factors = [splat(float(constant), part.lanes) for part in tile.parts]
            elif not lhs.lanes:
                element = memref.load(self._buffers[value], [address])
                factors = [splat(element, part.lanes) for part in tile.parts]
            else:
                factors = [self._load(value, address, part) for part in tile.parts]
            for j, (factor, other) in enumerate(zip(factors, rhs, strict=True), i * len(rhs)):
                result[j] = vector.fma(factor, other, result[j])
        return result

    def _row_addresses(self, address: SplitAddress, tile: _Tile) -> list[tuple[ir.Value, int]]:
        """A value and a constant to add for each row of the tile."""
        stride = address.row_stride
        first = index_value(address.outer, [tile.first_row, tile.panel])
        if stride is not None:
            return [(first, stride * i) for i in range(tile.rows)]
        rows = [arith.addi(tile.first_row, _index(i)) for i in range(1, tile.rows)]
        return [(first, 0), *((index_value(address.outer, [row, tile.panel]), 0) for row in rows)]

    def _finish(self, tile: _Tile, row: ir.Value, part: Part, total: ir.Value) -> None:
        """What follows the sum, for one vector, and the store."""
        group = self._plan.group
        result = after_sum(group, total, lambda read: self._read(read, tile, row, part))
        output = group.output
        address = split_address(output.address, self._plan.tiling)
        assert address is not None
        at = index_value(address.outer, [row, tile.panel])
        if address.lanes == 1:
            store(result, self._buffers[output.value], add(at, part.offset), part)
            return
        for lane, element_at in enumerate(_lane_addresses(at, address.lanes, part)):
            memref.StoreOp(vector.extract(result, [], [lane]), self._buffers[output.value], [element_at])

    def _read(self, read: Read, tile: _Tile, row: ir.Value, part: Part) -> ir.Value:
        type_ = vector_type(part.lanes, element_type(read.value.type))
        number = splat_constant(read.value)
        if number is not None:
            return vector.broadcast(type_, arith.constant(type_.element_type, number))
        address = split_address(read.address, self._plan.tiling)
        assert address is not None, "the plan has checked every address"
        at = index_value(address.outer, [row, tile.panel])
        if address.lanes == 1:
            return self._load(read.value, at, part)
        if address.lanes == 0:
            return vector.broadcast(type_, memref.load(self._buffers[read.value], [at]))
        places = _lane_addresses(at, address.lanes, part)
        elements = [memref.load(self._buffers[read.value], [place]) for place in places]
        return vector.from_elements(type_, elements + elements[-1:] * (part.lanes - part.valid))

    def _load(self, tensor: ir.Value, at: ir.Value, part: Part) -> ir.Value:
        return load(self._buffers[tensor], add(at, part.offset), part)

    def _add(self, base: ir.Value, expr: Expr, at: Sequence[ir.Value | None]) -> ir.Value:
        return base if expr == Expr(0) else arith.addi(base, index_value(expr, at))

    def _if(self, condition: ir.Value, then: Callable[[], None], other: Callable[[], None] | None = None) -> None:
        branch = scf.IfOp(condition, has_else=other is not None)
        with ir.InsertionPoint(branch.then_block):
            then()
            scf.YieldOp([])
        if other is not None:
            with ir.InsertionPoint(branch.else_block):
                other()
                scf.YieldOp([])


def _lane_addresses(at: ir.Value, stride: int, part: Part) -> list[ir.Value]:
    """Where the elements of a vector stand when they are not adjacent."""
    return [arith.addi(at, _index((part.offset + lane) * stride)) for lane in range(part.valid)]


def _index(value: int) -> ir.Value:
    return arith.constant(ir.IndexType.get(), value)
