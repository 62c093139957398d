"""The code of a planned contraction: what one thread of a workgroup does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from mlir import ir
from mlir.dialects import arith, scf, vector

from smartmem_mlir.index_maps.expr import Expr
from smartmem_mlir.kernels.addresses import LANE, PANEL, ROW, SplitAddress, split_address
from smartmem_mlir.kernels.spirv import integers
from smartmem_mlir.kernels.spirv.bodies import evaluate
from smartmem_mlir.kernels.spirv.border import write_border
from smartmem_mlir.kernels.spirv.control import when
from smartmem_mlir.kernels.spirv.plan import ShaderPlan
from smartmem_mlir.kernels.spirv.routes import quarter, route
from smartmem_mlir.kernels.spirv.shader import Thread
from smartmem_mlir.kernels.spirv.sources import source_of
from smartmem_mlir.kernels.spirv.storage import Binding, Elements, Place, VectorMemory
from smartmem_mlir.kernels.spirv.vectors import WIDTH, splat, vector_type
from smartmem_mlir.transforms.contraction_group import Read
from smartmem_mlir.transforms.view_ops import shape_of, splat_constant

_UNROLLED_TRIPS = 4
"""Loops of no more trips are written out."""


class ContractionShader:
    """Writes the body of a kernel.

    Args:
        plan: The kernel.
        bindings: The memory of each tensor that it reads or writes.
    """

    def __init__(self, plan: ShaderPlan, bindings: Mapping[ir.Value, Binding]) -> None:
        self._plan = plan
        self._bindings = bindings

    def emit(self, thread: Thread) -> None:
        """Writes it at the insertion point."""
        plan, tiling = self._plan, self._plan.tiling
        x, y = thread.workgroup
        column = integers.remainder(thread.local, plan.columns)
        split = integers.remainder(integers.divide(thread.local, plan.columns), plan.splits)
        group = integers.divide(thread.local, plan.columns * plan.splits)
        # What lies past the end computes the last panel or rows once more, and writes nothing.
        panel = integers.add(integers.scale(x, plan.columns), column)
        row = integers.scale(integers.add(integers.scale(y, plan.groups), group), plan.rows)
        self._panel = integers.at_most(panel, tiling.num_panels - 1) if tiling.num_panels % plan.columns else panel
        partial = tiling.num_rows % (plan.rows * plan.groups)
        self._row = integers.at_most(row, tiling.num_rows - plan.rows) if partial else row
        self._stored_from = row if partial else None
        self._in_range = integers.less(panel, tiling.num_panels) if tiling.num_panels % plan.columns else None
        self._lanes = self._existing_lanes()
        sums = self._sums(split)
        if plan.splits > 1:
            self._finish_shared(thread, sums, split)
        else:
            for i, total in enumerate(sums):
                self._finish(integers.add(self._row, i), total)
        output = plan.group.output.value
        binding = self._bindings[output]
        write_border(thread, plan.group.border, shape_of(output), binding, plan.workgroups, plan.invocations)

    def _existing_lanes(self) -> list[ir.Value]:
        """The numbers of the panel's lanes; the last one again for lanes that the dimension does not have."""
        extent = self._plan.tiling.extents[self._plan.tiling.lane]
        lanes = [integers.constant(lane) for lane in range(WIDTH)]
        if extent % WIDTH == 0:
            return lanes
        in_range = integers.remainder(self._panel, self._plan.tiling.panels_per_lane_range)
        left = arith.subi(integers.constant(extent - 1), integers.scale(in_range, WIDTH))
        return [lanes[0], *(arith.minui(lane, left) for lane in lanes[1:])]

    def _sums(self, split: ir.Value) -> list[ir.Value]:
        plan, group = self._plan, self._plan.group
        lhs = [source_of(plan, operand, self._bindings) for operand in plan.lhs]
        left_bases = [source.bases(self._row, self._panel, plan.rows) for source in lhs]
        right = source_of(plan, plan.rhs, self._bindings)
        (right_base,) = right.bases(self._row, self._panel, 1)

        def trip(part: int, trips: list[ir.Value], sums: list[ir.Value]) -> list[ir.Value]:
            panel = right.factors(right_base, trips, self._lanes)
            if plan.scale is not None:
                panel = [arith.mulf(lanes, self._scale(plan.scale, trips, term)) for term, lanes in enumerate(panel)]
            result = list(sums)
            for i, base in enumerate(left_bases[part]):
                for factor, lanes in zip(lhs[part].factors(base, trips, self._lanes), panel, strict=True):
                    result[i] = vector.fma(factor, lanes, result[i])
            return result

        def nest(level: int, part: int, trips: list[ir.Value], sums: list[ir.Value]) -> list[ir.Value]:
            if level == len(plan.trips):
                return trip(part, trips, sums)
            if plan.tiling.reductions[level] == group.lhs.dimension:
                unit = plan.step if level == len(plan.trips) - 1 else 1
                bounds = [*(start // unit for start in group.lhs.starts), plan.trips[level]]
                for number, (start, stop) in enumerate(pairwise(bounds)):
                    sums = loop(level, number, start, stop, trips, sums)
                return sums
            return loop(level, part, 0, plan.trips[level], trips, sums)

        def loop(
            level: int, part: int, start: int, stop: int, trips: list[ir.Value], sums: list[ir.Value]
        ) -> list[ir.Value]:
            divided = plan.splits > 1 and level == plan.split_level
            if not divided and stop - start <= _UNROLLED_TRIPS:
                for number in range(start, stop):
                    sums = nest(level + 1, part, [*trips, integers.constant(number)], sums)
                return sums
            first = split if divided else integers.constant(start)
            stride = plan.splits if divided else 1
            unroll = plan.unroll if level == len(plan.trips) - 1 else 1
            made = scf.ForOp(first, integers.constant(stop), integers.constant(stride * unroll), sums)
            with ir.InsertionPoint(made.body):
                partial = list(made.inner_iter_args)
                for copy in range(unroll):
                    number = integers.add(made.induction_variable, copy * stride)
                    partial = nest(level + 1, part, [*trips, number], partial)
                scf.YieldOp(partial)
            return list(made.results)

        return nest(0, 0, [], [splat(0.0)] * plan.rows)

    def _scale(self, address: SplitAddress, trips: Sequence[ir.Value], term: int) -> ir.Value:
        plan = self._plan
        assert plan.group.scale is not None
        values = dict(enumerate(trips, start=3))
        if trips:
            last = max(values)
            values[last] = integers.add(integers.scale(values[last], plan.step), term)
        binding = self._bindings[plan.group.scale.read.value]
        assert isinstance(binding, Elements)
        element = binding.load(integers.evaluate(address.outer + address.inner, values))
        return vector.broadcast(ir.VectorType.get([WIDTH], element.type), element)

    def _finish_shared(self, thread: Thread, sums: Sequence[ir.Value], split: ir.Value) -> None:
        """Adds the parts of each sum: of the rows, every thread takes those that its part's number counts off."""
        plan = self._plan
        for i, total in enumerate(sums):
            thread.share(integers.add(thread.local, i * plan.invocations), total)
        thread.barrier()
        first = arith.subi(thread.local, integers.scale(split, plan.columns))
        for i in range(0, plan.rows, plan.splits):
            number = integers.add(split, i)

            def finish(number: ir.Value = number) -> None:
                at = integers.add(first, integers.scale(number, plan.invocations))
                total = thread.shared(at)
                for part in range(1, plan.splits):
                    total = arith.addf(total, thread.shared(integers.add(at, part * plan.columns)))
                self._finish(integers.add(self._row, number), total)

            if i + plan.splits <= plan.rows:
                finish()
            else:
                when([integers.less(number, plan.rows)], finish)

    def _finish(self, row: ir.Value, total: ir.Value) -> None:
        """What follows the sum, for one vector, and the store."""
        conditions = [] if self._in_range is None else [self._in_range]
        if self._stored_from is not None:
            conditions.append(arith.cmpi(arith.CmpIPredicate.uge, row, self._stored_from))
        when(conditions, lambda: self._write(row, total))

    def _write(self, row: ir.Value, total: ir.Value) -> None:
        group = self._plan.group
        if isinstance(group.initial, Read):
            total = arith.addf(total, self._read(group.initial, row))
        elif group.initial != 0.0:
            total = arith.addf(total, splat(group.initial))
        results = [total]
        for step in group.steps:
            arguments = [
                results[argument] if isinstance(argument, int) else self._read(argument, row)
                for argument in step.arguments
            ]
            results.append(evaluate(step.body, arguments))
        self._store(row, results[-1])

    def _store(self, row: ir.Value, value: ir.Value) -> None:
        output = self._plan.group.output
        binding = self._bindings[output.value]
        if isinstance(binding, VectorMemory):
            binding.store(self._place(output, binding, row), value)
            return
        assert isinstance(binding, Elements)
        address = self._address(output)
        at = self._at(address.outer, row)
        extent = self._plan.tiling.extents[self._plan.tiling.lane]
        for lane in range(WIDTH):
            place = integers.add(at, lane * address.lanes)
            element = vector.extract(value, [], [lane])
            exists = []
            if extent % WIDTH and lane:
                exists = [arith.cmpi(arith.CmpIPredicate.eq, self._lanes[lane], integers.constant(lane))]
            when(exists, lambda place=place, element=element: binding.store(place, element))  # type: ignore[misc]

    def _read(self, read: Read, row: ir.Value) -> ir.Value:
        number = splat_constant(read.value)
        if number is not None:
            return splat(number)
        binding = self._bindings[read.value]
        if isinstance(binding, VectorMemory):
            return binding.load(self._place(read, binding, row))
        assert isinstance(binding, Elements)
        address = self._address(read)
        at = self._at(address.outer, row)
        if not address.lanes:
            return vector.broadcast(vector_type(), binding.load(at))
        return binding.gather([integers.add(at, integers.scale(lane, address.lanes)) for lane in self._lanes])

    def _address(self, read: Read) -> SplitAddress:
        address = split_address(read.address, self._plan.tiling)
        assert address is not None, "the plan has checked every address"
        return address

    def _place(self, read: Read, binding: VectorMemory, row: ir.Value) -> Place:
        """Of the vector of lanes that is read or written after the sum."""
        x, *rest = route(read.access, shape_of(read.value), self._plan.tiling, binding)
        return self._at(quarter(x.outer), row), *(self._at(part.outer, row) for part in rest)

    def _at(self, outer: Expr, row: ir.Value) -> ir.Value:
        return integers.evaluate(outer, {ROW: row, PANEL: self._panel, LANE: integers.constant(0)})
