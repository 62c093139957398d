"""The code of a contraction by cooperative matrices: subgroups sum, threads do what follows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from mlir import ir
from mlir.dialects import arith, scf

from smartmem_mlir.kernels.addresses import FIRST_REDUCTION, PANEL
from smartmem_mlir.kernels.spirv import integers
from smartmem_mlir.kernels.spirv.block_copy import BlockCopy
from smartmem_mlir.kernels.spirv.border import write_border
from smartmem_mlir.kernels.spirv.contraction import ContractionShader
from smartmem_mlir.kernels.spirv.control import when
from smartmem_mlir.kernels.spirv.cooperative_matrices import Matrix, MatrixUnit, matrix_unit
from smartmem_mlir.kernels.spirv.cooperative_plan import MatrixPlan
from smartmem_mlir.kernels.spirv.shader import Thread
from smartmem_mlir.kernels.spirv.storage import Binding, Blocks, Elements
from smartmem_mlir.kernels.spirv.vectors import WIDTH
from smartmem_mlir.transforms.view_ops import shape_of

Sums = list[list[ir.Value]]


class CooperativeShader(ContractionShader):
    """Writes the body of a kernel.

    Args:
        plan: The kernel.
        bindings: The memory of each tensor that it reads or writes.
    """

    def __init__(self, plan: MatrixPlan, bindings: Mapping[ir.Value, Binding]) -> None:
        super().__init__(plan, bindings)
        self._matrix_plan = plan

    def emit(self, thread: Thread) -> None:
        """Writes it at the insertion point."""
        plan = self._matrix_plan
        tiling, (rows, lanes) = plan.tiling, plan.extents
        x, y = thread.workgroup
        unit = matrix_unit(plan.matrices, thread)
        count = tiling.panels_per_lane_range
        self._range = integers.scale(integers.divide(x, plan.blocks), count)
        panel = integers.add(self._range, integers.scale(integers.remainder(x, plan.blocks), lanes // WIDTH))
        wanted = integers.scale(y, rows)
        partial = tiling.num_rows % rows != 0
        # The last tile begins earlier than it would, and does not write the rows of the one before it.
        row = integers.at_most(wanted, tiling.num_rows - rows) if partial else wanted
        self._stored_from = wanted if partial else None
        self._in_range = None
        self._lanes = [integers.constant(lane) for lane in range(WIDTH)]
        self._sum_tiles(thread, unit, row, panel)
        thread.barrier()
        self._finish_tile(thread, row, panel)
        output = plan.group.output.value
        write_border(
            thread, plan.group.border, shape_of(output), self._bindings[output], plan.workgroups, plan.invocations
        )

    def _sum_tiles(self, thread: Thread, unit: MatrixUnit, row: ir.Value, panel: ir.Value) -> None:
        """Each subgroup's sums, to workgroup memory."""
        plan = self._matrix_plan
        (_, lanes), (_, across), (_, beside) = plan.subgroup_extents, plan.tile, plan.subgroups
        number = unit.subgroup
        split = integers.remainder(number, plan.splits)
        tile = integers.divide(number, plan.splits)
        panel = integers.add(panel, integers.scale(integers.remainder(tile, beside), lanes // WIDTH))
        copy = BlockCopy(plan, self._blocks(), thread, row, self._range)
        sums = self._sums_of(unit, copy, split, integers.divide(tile, beside), panel)
        # Sums go where others may still read blocks.
        thread.barrier()
        first = integers.scale(number, plan.region)
        pitch = lanes // WIDTH
        for i, total in enumerate(sums):
            at = (i // across) * plan.matrices.rows * pitch + (i % across) * plan.matrices.lanes // WIDTH
            unit.store(total, integers.add(first, at), pitch)

    def _blocks(self) -> Blocks:
        memory = self._bindings[self._plan.lhs[0].value]
        assert isinstance(memory, Blocks), "the left factor is copied"
        return memory

    def _sums_of(self, unit: MatrixUnit, copy: BlockCopy, split: ir.Value, tile: ir.Value, panel: ir.Value) -> Sums:
        """A subgroup's sums.

        Args:
            unit: What multiplies.
            copy: Brings the left factor.
            split: The subgroup's part of the sum.
            tile: Its tile, counted along rows.
            panel: Its first panel.
        """
        plan = self._matrix_plan
        (down, across), matrices = plan.tile, plan.matrices
        memory = self._bindings[plan.rhs.value]
        assert isinstance(memory, Elements), "matrices are loaded from a buffer"
        right_bases = [
            integers.evaluate(plan.right.outer, {PANEL: integers.add(panel, i * matrices.lanes // WIDTH)})
            for i in range(across)
        ]
        left_base = copy.first_block(tile, split)

        def trip(trips: Sequence[ir.Value], number: ir.Value, sums: Sums) -> Sums:
            blocks = copy.load(trips, number)
            first = integers.add(integers.scale(number, plan.splits), split)
            rights = []
            for i in range(plan.unroll):
                term = integers.add(integers.scale(first, plan.unroll), i)
                values = _numbered([*trips, integers.scale(term, matrices.terms)])
                moved = integers.evaluate(plan.right.inner, values)
                rights.append(
                    [
                        unit.load(
                            Matrix(memory, integers.add(base, moved), plan.right.pitch, plan.right.by_columns), "B"
                        )
                        for base in right_bases
                    ]
                )
            copy.store(blocks)
            for i in range(plan.unroll):
                lefts = [
                    unit.load(Matrix(None, integers.add(left_base, at), plan.row_pitch), "A") for at in copy.matrices(i)
                ]
                pairs = [(left, right) for left in lefts for right in rights[i]]
                sums = [unit.multiply_add(*pair, total) for pair, total in zip(pairs, sums, strict=True)]
            return sums

        def nest(trips: list[ir.Value], sums: Sums) -> Sums:
            level = len(trips)
            if level == len(plan.trips) - 1:
                count = plan.trips[-1] // (plan.splits * plan.unroll)
                return _loop(count, lambda number, sums: trip(trips, number, sums), sums)
            return _loop(plan.trips[level], lambda number, sums: nest([*trips, number], sums), sums)

        return nest([], [unit.zero() for _ in range(down * across)])

    def _finish_tile(self, thread: Thread, row: ir.Value, panel: ir.Value) -> None:
        """What follows the sum, for the vectors of the workgroup's tile, divided among its threads."""
        plan = self._matrix_plan
        rows, lanes = plan.extents
        vectors = rows * lanes // WIDTH
        each = -(-vectors // plan.invocations)

        def finish(number: ir.Value) -> None:
            here, column = integers.divide(number, lanes // WIDTH), integers.remainder(number, lanes // WIDTH)
            total = self._total(thread, here, column)
            self._panel = integers.add(panel, column)
            self._finish(integers.add(row, here), total)

        def body(trip: ir.Value, sums: Sums) -> Sums:
            number = integers.add(thread.local, integers.scale(trip, plan.invocations))
            partial = vectors % plan.invocations != 0
            when([integers.less(number, vectors)] if partial else [], lambda: finish(number))
            return sums

        _loop(each, body, [])

    def _total(self, thread: Thread, row: ir.Value, column: ir.Value) -> ir.Value:
        """A vector of the workgroup's tile, from all parts of its sum."""
        plan = self._matrix_plan
        rows, lanes = plan.subgroup_extents
        tile = integers.add(
            integers.scale(integers.divide(row, rows), plan.subgroups[1]), integers.divide(column, lanes // WIDTH)
        )
        inside = integers.add(
            integers.scale(integers.remainder(row, rows), lanes // WIDTH), integers.remainder(column, lanes // WIDTH)
        )
        at = integers.add(integers.scale(tile, plan.splits * plan.region), inside)
        total = thread.shared(at)
        for part in range(1, plan.splits):
            total = arith.addf(total, thread.shared(integers.add(at, part * plan.region)))
        return total


def _numbered(terms: Sequence[ir.Value]) -> dict[int, ir.Value]:
    """Places along the sum, by the dimensions that addresses know them by."""
    return {FIRST_REDUCTION + i: term for i, term in enumerate(terms)}


def _loop(trips: int, body: Callable[[ir.Value, Sums], Sums], sums: Sums) -> Sums:
    """A loop that carries sums; one trip is written out."""
    if trips == 1:
        return body(integers.constant(0), sums)
    sizes = [len(total) for total in sums]
    start, stop, step = map(integers.constant, (0, trips, 1))
    made = scf.ForOp(start, stop, step, [part for total in sums for part in total])
    with ir.InsertionPoint(made.body):
        result = body(made.induction_variable, _nested(list(made.inner_iter_args), sizes))
        scf.YieldOp([part for total in result for part in total])
    return _nested(list(made.results), sizes)


def _nested(flat: Sequence[ir.Value], sizes: Sequence[int]) -> Sums:
    parts = iter(flat)
    return [[next(parts) for _ in range(size)] for size in sizes]
